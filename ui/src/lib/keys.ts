/** leaves reports whether a key moves the focus out of a console, which receives all other keys. No browser, system
 * or guest uses it otherwise. */
export const leaves = (e: KeyboardEvent) => e.key === 'Enter' && e.ctrlKey && e.shiftKey;
