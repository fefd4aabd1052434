import { isValidElement, type ReactNode } from 'react';

/** textOf what a cell shows, as far as it stands in what was written and not in what a component makes of it. */
export function textOf(node: ReactNode): string {
  if (typeof node === 'string' || typeof node === 'number') return String(node);
  if (Array.isArray(node)) return node.map(textOf).join('');
  return isValidElement<{ children?: ReactNode }>(node) ? textOf(node.props.children) : '';
}
