// What is wider than the screen scrolls by itself. While more of it lies to the right, its edge fades (custom.css).
const boxes = ".bd-article pre, .bd-article table, .bd-article div.math";
const hint = box => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);

document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll(boxes)) {
    box.addEventListener("scroll", () => hint(box), {passive: true});
    new ResizeObserver(() => hint(box)).observe(box);
  }
});
