// A websocket to an instance's console or screen, which reconnects when it closes.
import { useQuery } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import { endOf, pauseAfter, retries, type End } from './closed';
import { api, base, ok } from './client';

/** With this protocol, the server sends an empty message once the console is open, or else the error in the close
 * frame. */
const protocol = 'basalt';

export interface Link {
  state: 'connecting' | 'open' | End;
  /** Set after an End if it reconnects by itself. */
  again: boolean;
  retry: () => void;
}

/** useLink connects while on is true. It passes every websocket to attach, which must be stable, once its console is
 * open and before its first message. attach calls works when the console is usable. */
export function useLink(
  id: string,
  what: 'console' | 'vnc' | 'shell',
  on: boolean,
  attach: (socket: WebSocket, works: () => void) => void,
): Link {
  const [state, set] = useState<Link['state']>('connecting');
  const [again, setAgain] = useState(true);
  const [turn, setTurn] = useState(0);
  const failures = useRef(0);
  const retry = useCallback(() => setTurn((n) => n + 1), []);
  useEffect(() => {
    if (!on) return;
    const url = new URL(`${base}/v1/instances/${encodeURIComponent(id)}/${what}`, globalThis.location.href);
    url.protocol = url.protocol.replace('http', 'ws');
    const socket = new WebSocket(url, protocol);
    socket.binaryType = 'arraybuffer';
    let timer: ReturnType<typeof setTimeout> | undefined;
    const own = new AbortController();
    const works = () => {
      if (own.signal.aborted || socket.readyState !== WebSocket.OPEN) return;
      failures.current = 0;
      set('open');
    };
    // An empty message means that the console was not refused.
    socket.addEventListener('message', () => attach(socket, works), { once: true, signal: own.signal });
    socket.addEventListener(
      'close',
      (e) => {
        set(endOf(e));
        const goesOn = retries(what, e.code);
        setAgain(goesOn);
        if (goesOn) timer = setTimeout(retry, pauseAfter(failures.current++));
      },
      { signal: own.signal },
    );
    return () => {
      own.abort();
      clearTimeout(timer);
      // Closing it while it connects would log an error in the browser's console.
      if (socket.readyState === WebSocket.CONNECTING) socket.addEventListener('open', () => socket.close());
      else socket.close();
      set('connecting');
    };
  }, [id, what, on, turn, attach, retry]);
  return { state, retry, again };
}

/** useEarlier returns the previous output of the serial console, read once per mount. */
export const useEarlier = (id: string) =>
  useQuery({
    queryKey: ['console-log', id, 'once'],
    queryFn: ({ signal }) =>
      ok(
        api.GET('/v1/instances/{id}/console-log', {
          params: { path: { id }, query: { tail: 16384 } },
          parseAs: 'text',
          signal,
        }),
      ),
    staleTime: Infinity,
    gcTime: 0,
    retry: false, // the console also works without it
  });
