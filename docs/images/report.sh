#!/bin/sh
# Draws docs/images/report.png and one_group_loses.png, the first screens of the reports that examples/plot_report.py and
# examples/one_group_loses.py make. Needs a headless Chromium (Debian's
# package chromium), LightGBM and matplotlib. From the clone's root:
#     sh docs/images/report.sh .venv/bin/python
set -e
python=${1:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
draw() {
    MPLBACKEND=Agg "$python" "examples/$1.py" --output "$folder/report.html" > /dev/null
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$folder/profile" \
        --blink-settings=preferredColorScheme=1 --window-size=1120,"$3" --screenshot="$folder/report.png" "file://$folder/report.html"
    # 256 colours, of a method that keeps rare ones, make the file small.
    "$python" -c "import sys; from PIL import Image; Image.open(sys.argv[1]).convert('RGB').quantize(256, method=2).save(sys.argv[2], optimize=True)" \
        "$folder/report.png" "docs/images/$2.png"
}
draw plot_report report 1500
draw one_group_loses one_group_loses 870
