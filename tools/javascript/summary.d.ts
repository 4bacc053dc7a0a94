// The views of a summary's images, texts, sounds and histograms, drawn by ES modules of their own.

interface SteppedSeries {
  name: string;
  steps: number[];
}

/** What was chosen, and the controls that choose it. */
interface StepperState {
  name: string;
  choice: HTMLSelectElement;
  play: HTMLButtonElement;
  slider: HTMLInputElement;
  label: HTMLOutputElement;
  place: HTMLElement;
  timer: number;
  follow: AbortController | null;
}

/** The element of a view, which keeps what was chosen from one drawing to the next. */
type SteppedElement = HTMLElement & { stepper?: StepperState };

/** The same series of another run, if one is compared. */
type WithBeside<Series> = Series & { beside?: (Series & { run: string }) | null };

type ImageSeries = WithBeside<SteppedSeries & { pixels: Uint8Array & { shape: number[] } }>;
type TextSeries = WithBeside<SteppedSeries & { texts: string[] }>;
type AudioSeries = WithBeside<SteppedSeries & { samples: Float32Array & { shape: number[] }; rate: number }>;
type HistogramSeries = SteppedSeries & { edges: Float64Array; counts: Float64Array };
