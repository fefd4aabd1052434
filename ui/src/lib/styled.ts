// xterm.js writes its styles into <style> elements and style attributes, which
// the pages' policy forbids. Here they go where the policy lets script put them:
// into style sheets that the document adopts, and into element.style. See
// docs/decisions/0021.

/** A style element that nothing is in: its text is an adopted sheet's. */
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
  /** Makes elements whose styles the policy allows; else it is the owner. */
  document: Document;
  /** during run, which does not wait, the owner makes them itself. */
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
        Reflect.deleteProperty(owner, 'createElement'); // the prototype's shows again
      }
    },
  };
}
