/** save offers a text as a file download. */
export function save(name: string, type: string, text: string) {
  const href = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  Object.assign(document.createElement('a'), { href, download: name }).click();
  // Browsers read it on the click; some begin a moment later.
  setTimeout(() => URL.revokeObjectURL(href), 1000);
}
