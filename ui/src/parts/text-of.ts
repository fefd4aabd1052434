import { isValidElement, type ReactNode } from 'react';

/** textOf returns the text of a cell, as far as it is in the JSX itself and not rendered by a component. */
export function textOf(node: ReactNode): string {
  if (typeof node === 'string' || typeof node === 'number') return String(node);
  if (Array.isArray(node)) return node.map(textOf).join('');
  return isValidElement<{ children?: ReactNode }>(node) ? textOf(node.props.children) : '';
}
