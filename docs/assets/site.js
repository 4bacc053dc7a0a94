// A panel in a page has no scroll bar of its own: its frame is as high as what it shows. A page that
// was opened from a disk may not look into a frame; there the height is that of site.css.
const fit = (frame) => {
  const shown = frame.contentDocument?.documentElement;
  if (!shown) return;
  new ResizeObserver(() => {
    frame.style.height = `${shown.offsetHeight + 2}px`; // and its border
  }).observe(shown);
};

for (const frame of document.querySelectorAll("iframe.panel")) {
  frame.addEventListener("load", () => fit(frame));
  fit(frame); // loaded before this script
}
