export default {
  /**
   * @param {SteppedElement} element
   * @param {{ series: AudioSeries[], run: string }} data
   */
  draw(element, data) {
    stepper(element, data.series, (place, one, at) => {
      const key = JSON.stringify([one.name, one.steps[at], one.beside?.run]);
      if (place.dataset.shown === key) return; // it may be playing
      place.dataset.shown = key;
      sideBySide(place, { run: data.run, one, at, make: playerOf });
    });
  },
};

/**
 * @param {AudioSeries} series
 * @param {number} at
 */
function playerOf({ name, steps, samples, rate }, at) {
  const [, n] = samples.shape;
  const player = document.createElement("audio");
  const address = URL.createObjectURL(waveOf(samples.subarray(at * n, (at + 1) * n), rate));
  player.controls = true;
  player.src = address;
  player.setAttribute("aria-label", `${name} at step ${steps[at]}`);
  player.style = "width: 100%; max-width: 420px";
  player.addEventListener("loadeddata", () => URL.revokeObjectURL(address), { once: true });
  return player;
}

/**
 * A WAV file of one channel with 16 bits; what is louder than 1 is cut off.
 * @param {Float32Array} samples
 * @param {number} rate
 */
function waveOf(samples, rate) {
  const [head, bytes] = [44, 2];
  const file = new DataView(new ArrayBuffer(head + bytes * samples.length));
  /** @type {(at: number, text: string) => void} */
  const words = (at, text) => [...text].forEach((letter, k) => file.setUint8(at + k, letter.charCodeAt(0)));
  words(0, "RIFF");
  file.setUint32(4, file.byteLength - 8, true);
  words(8, "WAVEfmt ");
  file.setUint32(16, 16, true);
  file.setUint16(20, 1, true);
  file.setUint16(22, 1, true);
  file.setUint32(24, rate, true);
  file.setUint32(28, bytes * rate, true);
  file.setUint16(32, bytes, true);
  file.setUint16(34, 8 * bytes, true);
  words(36, "data");
  file.setUint32(40, bytes * samples.length, true);
  samples.forEach((value, k) => {
    const cut = Math.max(-1, Math.min(1, Number.isNaN(value) ? 0 : value));
    file.setInt16(head + bytes * k, Math.round(32767 * cut), true);
  });
  return new Blob([file.buffer], { type: "audio/wav" });
}
