/** Requests to the kernel while the table is visible: lines of visible rows, and new or changed runs. */

const WAIT_MS = 80; // rows that are scrolled past are not read

/**
 * `send(type, fields)`; `isKnown(at)` tells whether the line of a row has been read.
 * @param {{
 *   el: HTMLElement,
 *   send: (type: string, fields: object) => void,
 *   isKnown: (at: number) => boolean,
 *   signal: AbortSignal,
 * }} parts
 */
export function createReading({ el, send, isKnown, signal }) {
  let isSeen = false;
  let restMs = 0; // until there may be more to be told; 0 for never
  let waits = false; // for the answer to a look
  /** @type {number[]} */
  let places = [];
  let timer = 0;
  let pause = 0;
  const observer = new IntersectionObserver((all) => {
    isSeen = all[all.length - 1].isIntersecting;
    goOn();
  });
  observer.observe(el);
  document.addEventListener("visibilitychange", goOn, { signal });
  signal.addEventListener("abort", () => {
    observer.disconnect();
    clearTimeout(timer);
    clearTimeout(pause);
  });

  const isShown = () => isSeen && !document.hidden && !signal.aborted;

  function goOn() {
    if (!isShown()) return;
    ask();
    look();
  }

  function ask() {
    clearTimeout(pause);
    pause = setTimeout(() => {
      const runs = places.filter((at) => !isKnown(at));
      if (runs.length && isShown()) send("lines", { runs });
    }, WAIT_MS);
  }

  function look() {
    if (!restMs || waits || timer || !isShown()) return;
    timer = setTimeout(() => {
      timer = 0;
      if (!isShown()) return;
      waits = true;
      send("look", {});
    }, restMs);
  }

  return {
    /**
     * Other rows are in sight.
     * @param {number[]} now
     */
    seen(now) {
      places = now;
      if (isShown()) ask();
    },
    /** @param {number} againS */
    looked(againS) {
      [restMs, waits] = [1000 * againS, false];
      look();
    },
  };
}
