/** The content of a dialog: made as the dialog opens, and known as long as it is open. */

/**
 * `open()` makes the content and shows it at `anchor`; at an open dialog it closes it.
 * @template {{ el: HTMLElement }} Content
 * @param {{
 *   dialogs: PanelParts["dialogs"],
 *   anchor: HTMLElement,
 *   label: string,
 *   create: () => Content,
 * }} parts
 */
export function createContentOf({ dialogs, anchor, label, create }) {
  /** @type {Content | null} */
  let shown = null;

  function open() {
    const made = create();
    dialogs.open({ anchor, label, content: made.el, closed: () => (shown = null) });
    // Opened at the same anchor again, the dialog has closed.
    shown = dialogs.isOpenAt(anchor) ? made : null;
    return shown;
  }

  return {
    open,
    get shown() {
      return shown;
    },
  };
}
