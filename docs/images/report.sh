#!/bin/sh
# Draws docs/images/report.png, the first screen of the report that examples/plot_report.py makes. Needs a headless Chromium (Debian's
# package chromium), LightGBM and matplotlib. From the clone's root:
#     sh docs/images/report.sh .venv/bin/python
set -e
python=${1:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
MPLBACKEND=Agg "$python" examples/plot_report.py --output "$folder/report.html"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$folder/profile" --blink-settings=preferredColorScheme=1 \
    --window-size=1120,1500 --screenshot="$folder/report.png" "file://$folder/report.html"
# 256 colours, of a method that keeps rare ones, make the file small.
"$python" -c "import sys; from PIL import Image; Image.open(sys.argv[1]).convert('RGB').quantize(256, method=2).save(sys.argv[2], optimize=True)" \
    "$folder/report.png" docs/images/report.png
