// A websocket to an instance's console or screen, made again when it ends.
import { useQuery } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import { endOf, pauseAfter, retries, type End } from './closed';
import { api, base, ok } from './client';

/** Whoever asks for it is told by an empty message that there is a console, or by the close frame why not. */
const protocol = 'basalt';

export interface Link {
  state: 'connecting' | 'open' | End;
  /** after an End: it connects again by itself. */
  again: boolean;
  retry: () => void;
}

/** useLink connects while on is. attach, which has to stay the same, hears of
 * every websocket once there is a console behind it, before the first message of
 * that, and calls works when it can be used. */
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
    // An empty message says that it is not refused.
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
      // Closed while it connects, it would be an error on the browser's console.
      if (socket.readyState === WebSocket.CONNECTING) socket.addEventListener('open', () => socket.close());
      else socket.close();
      set('connecting');
    };
  }, [id, what, on, turn, attach, retry]);
  return { state, retry, again };
}

/** useEarlier is what the serial console said before somebody came, read once each time. */
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
    retry: false, // without it the console works as well
  });
