// The terminal of a serial console or a shell: xterm.js, configured for the portal.
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import { leaves } from './keys';
import { chunks } from './chunks';
import { styled } from './styled';
import { followsTheme } from './theme';

export interface ConsoleTerminal {
  /** attach connects a websocket: it shows what arrives, and sends what is typed. */
  attach: (socket: WebSocket) => void;
  paste: (text: string) => void;
  selection: () => string;
  focus: () => void;
  dispose: () => void;
}

interface Options {
  name: string;
  /** Output of the console so far. */
  earlier: string;
  onLeave: () => void;
  onSize: (columns: number, rows: number) => void;
  onSelection: (some: boolean) => void;
}

const light = {
  background: '#ffffff',
  foreground: '#151515',
  cursor: '#151515',
  cursorAccent: '#ffffff',
  selectionBackground: '#b9dafc',
  selectionForeground: '#151515',
};
const dark = {
  background: '#151515',
  foreground: '#f2f2f2',
  cursor: '#f2f2f2',
  cursorAccent: '#151515',
  selectionBackground: '#004d99',
  selectionForeground: '#ffffff',
};

const copies = (e: KeyboardEvent) => e.code === 'KeyC' && e.ctrlKey && e.shiftKey;

export function openTerminal(
  box: HTMLElement,
  { name, earlier, onLeave, onSize, onSelection }: Options,
): ConsoleTerminal {
  const own = styled(document);
  const term = new Terminal({
    documentOverride: own.document,
    fontFamily: 'ui-monospace, "DejaVu Sans Mono", "Liberation Mono", monospace',
    fontSize: 14,
    scrollback: 5000,
    cursorBlink: false,
    minimumContrastRatio: 4.5,
    screenReaderMode: true, // pages cannot detect a screen reader
    theme: dark,
  });
  const fit = new FitAddon();
  term.loadAddon(fit);
  own.during(() => term.open(box));
  term.textarea?.setAttribute('aria-label', name);
  const unfollow = followsTheme((isDark) => {
    term.options.theme = isDark ? dark : light;
  });

  let socket: WebSocket | undefined;
  let replayed = false; // terminal queries in the earlier output were answered then
  const send = (data: Uint8Array<ArrayBuffer>) => {
    if (!replayed || socket?.readyState !== WebSocket.OPEN) return;
    for (const c of chunks(data)) socket.send(c);
  };
  const encoder = new TextEncoder();
  term.onData((text) => send(encoder.encode(text)));
  term.onBinary((bytes) => send(Uint8Array.from(bytes, (c) => c.charCodeAt(0))));
  term.onResize(({ cols, rows }) => onSize(cols, rows));
  term.onSelectionChange(() => onSelection(term.hasSelection()));
  term.attachCustomKeyEventHandler((e) => {
    if (leaves(e)) {
      if (e.type === 'keydown') onLeave();
    } else if (copies(e) && term.hasSelection()) {
      if (e.type === 'keydown') void navigator.clipboard?.writeText(term.getSelection()).catch(() => undefined);
    } else return true;
    e.preventDefault();
    return false;
  });
  fit.fit();
  onSize(term.cols, term.rows);
  term.write(earlier, () => {
    replayed = true;
  });
  const resized = new ResizeObserver(() => fit.fit());
  resized.observe(box);

  return {
    attach(s) {
      socket = s;
      s.addEventListener('message', ({ data }: MessageEvent<ArrayBuffer | string>) => {
        if (typeof data !== 'string') term.write(new Uint8Array(data)); // text messages of a shell are about its state
      });
    },
    paste: (text) => term.paste(text),
    selection: () => term.getSelection(),
    focus: () => term.focus(),
    dispose() {
      resized.disconnect();
      unfollow();
      term.dispose();
    },
  };
}
