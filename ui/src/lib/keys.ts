/** leaves says that a key leaves a console, which takes all others: no browser, system or guest has another use for it. */
export const leaves = (e: KeyboardEvent) => e.key === 'Enter' && e.ctrlKey && e.shiftKey;
