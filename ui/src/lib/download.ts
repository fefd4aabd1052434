/** save a text as a file of the browser's. */
export function save(name: string, type: string, text: string) {
  const href = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  Object.assign(document.createElement('a'), { href, download: name }).click();
  // The browser has it once the click is done; some begin a moment later.
  setTimeout(() => URL.revokeObjectURL(href), 1000);
}
