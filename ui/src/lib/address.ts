// The portal's addresses: #/path?query. wouter's own hook treats the query as a part of the path and writes it
// before the "#".
import { useCallback, useSyncExternalStore } from 'react';

/** pathOf returns what follows the "#", without the query. */
export const pathOf = (hash: string): string => `/${hash.replace(/^#?\/?/, '').split('?', 1)[0] ?? ''}`;

/** queryOf returns the query after the "#". */
export const queryOf = (hash: string): URLSearchParams =>
  new URLSearchParams(hash.includes('?') ? hash.slice(hash.indexOf('?') + 1) : '');

/** withParam returns a hash with another value of a name in its query; an empty value removes the name. */
export function withParam(hash: string, name: string, value: string): string {
  const query = queryOf(hash);
  if (value) query.set(name, value);
  else query.delete(name);
  const rest = query.toString();
  return `#${pathOf(hash)}${rest && `?${rest}`}`;
}

/** withParams returns a hash with other values of several names in its query. */
export const withParams = (hash: string, values: Readonly<Record<string, string>>): string =>
  Object.entries(values).reduce((h, [name, value]) => withParam(h, name, value), hash);

function write(hash: string, replace: boolean) {
  history[replace ? 'replaceState' : 'pushState'](null, '', hash);
  dispatchEvent(new HashChangeEvent('hashchange'));
}

const subscribe = (changed: () => void) => {
  addEventListener('hashchange', changed);
  return () => removeEventListener('hashchange', changed);
};

const go = (to: string, { replace = false } = {}) => write(`#${to}`, replace);

/** useAddress returns the path, and a function that changes it: the hook of the portal's Router. */
export const useAddress = (): [string, typeof go] => [useSyncExternalStore(subscribe, () => pathOf(location.hash)), go];
useAddress.hrefs = (href: string) => `#${href}`;

/** useParam returns a value in the address's query. Setting it adds no history entry. */
export function useParam(name: string): [string, (value: string) => void] {
  const value = useSyncExternalStore(subscribe, () => queryOf(location.hash).get(name) ?? '');
  const set = useCallback((v: string) => write(withParam(location.hash, name, v), true), [name]);
  return [value, set];
}

/** setParams sets several values in the address's query. */
export const setParams = (values: Readonly<Record<string, string>>, replace = false) =>
  write(withParams(location.hash, values), replace);

/** useParams returns several values in the address's query. Setting them adds a history entry, unless it replaces
 * the last. */
export function useParams<N extends string>(
  names: readonly N[],
): [Record<N, string>, (values: Partial<Record<N, string>>, replace?: boolean) => void] {
  const query = useSyncExternalStore(subscribe, () => queryOf(location.hash).toString());
  const values = new URLSearchParams(query);
  return [
    Object.fromEntries(names.map((n) => [n, values.get(n) ?? ''])) as Record<N, string>,
    setParams as (values: Partial<Record<N, string>>, replace?: boolean) => void,
  ];
}

/** passwordLink returns the address at which a new user sets a password. */
export const passwordLink = (token: string) => `${location.origin}/#/password?token=${encodeURIComponent(token)}`;
