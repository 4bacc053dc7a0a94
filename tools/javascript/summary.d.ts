// The views of a summary's images and histograms, which are drawn by ES modules of their own.

interface SteppedSeries {
  name: string;
  steps: number[];
}

/** What was chosen, and the controls that choose it. */
interface StepperState {
  name: string;
  step: number;
  choice: HTMLSelectElement;
  slider: HTMLInputElement;
  label: HTMLOutputElement;
  place: HTMLElement;
}

/** The element of a view, which keeps what was chosen from one drawing to the next. */
type SteppedElement = HTMLElement & { stepper?: StepperState };

type ImageSeries = SteppedSeries & { pixels: Uint8Array & { shape: number[] } };
type HistogramSeries = SteppedSeries & { edges: Float64Array; counts: Float64Array };
