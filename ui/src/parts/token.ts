// Tokens of links, which are after the "#" of an address.
import { useEffect, useState } from 'react';

/** tokenIn returns the token after the "#" of an address. */
export const tokenIn = (hash: string): string | undefined =>
  new URLSearchParams(hash.split('?')[1] ?? '').get('token') ?? undefined;

/** useToken returns the token of the link that has opened the page, also later and in the same tab, or an empty string.
 * It is removed from the history: page is the address without it. */
export function useToken(page: string): string {
  const [token, setToken] = useState(() => tokenIn(location.hash) ?? '');
  useEffect(() => {
    const take = () => {
      const found = tokenIn(location.hash);
      if (found === undefined) return;
      setToken(found);
      history.replaceState(null, '', page);
    };
    take();
    addEventListener('hashchange', take);
    return () => removeEventListener('hashchange', take);
  }, [page]);
  return token;
}
