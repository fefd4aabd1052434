// xterm.js writes its styles into <style> elements and style attributes, which the pages' policy forbids. This
// module moves them to where the policy permits scripts to write: style sheets that the document adopts, and
// element.style. See docs/decisions/0021.

/** sheetElement returns an empty style element whose text becomes an adopted sheet. */
function sheetElement(create: Document['createElement'], owner: Document): HTMLElement {
  const sheet = new CSSStyleSheet();
  const element = create('span');
  element.hidden = true;
  owner.adoptedStyleSheets = [...owner.adoptedStyleSheets, sheet];
  Object.defineProperties(element, {
    textContent: { set: (text: string) => sheet.replaceSync(text) },
    remove: {
      value: () => {
        owner.adoptedStyleSheets = owner.adoptedStyleSheets.filter((s) => s !== sheet);
        Element.prototype.remove.call(element);
      },
    },
  });
  return element;
}

function setAttribute(this: HTMLElement, name: string, value: string): void {
  if (name === 'style') this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
}

export interface Styled {
  /** Creates elements whose styles the policy permits; everything else is passed to the owner. */
  document: Document;
  /** during makes the owner create such elements itself while run executes, which must be synchronous. */
  during: (run: () => void) => void;
}

export function styled(owner: Document): Styled {
  const create = owner.createElement.bind(owner);
  const make = (name: string): HTMLElement => {
    if (name === 'style') return sheetElement(create, owner);
    const element = create(name);
    if (name === 'span') element.setAttribute = setAttribute;
    return element;
  };
  const proxy = new Proxy(owner, {
    get(target, key) {
      if (key === 'createElement') return make;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
  return {
    document: proxy,
    during(run) {
      Object.defineProperty(owner, 'createElement', { value: make, configurable: true });
      try {
        run();
      } finally {
        Reflect.deleteProperty(owner, 'createElement'); // the prototype's is visible again
      }
    },
  };
}
