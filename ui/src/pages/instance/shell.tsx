// A shell in the instance, through the SSH gateway: a terminal that reports its size.
import { Button } from '@patternfly/react-core';
import { useCallback, useRef, useState } from 'react';
import { useLink } from '../../api/link';
import { useText } from '../../i18n';
import { openTerminal, type ConsoleTerminal } from '../../lib/terminal';
import { ConsoleFrame } from './frame';
import '@xterm/xterm/css/xterm.css';

/** The text messages of a shell (OpenInstanceShell). */
type Said =
  { start: { terminal: string; columns: number; rows: number } } | { resize: { columns: number; rows: number } };

export default function Shell({ id }: { id: string }) {
  const { t } = useText();
  const [terminal, setTerminal] = useState<ConsoleTerminal | null>(null);
  const [selected, setSelected] = useState(false);
  const actions = useRef<HTMLDivElement>(null);
  const size = useRef({ columns: 80, rows: 24 });
  const say = useRef<(m: Said) => void>(() => undefined);
  const name = t('console.shellName');
  const mount = useCallback(
    (box: HTMLDivElement) => {
      const made = openTerminal(box, {
        name,
        earlier: '',
        onLeave: () => actions.current?.querySelector('button')?.focus(),
        onSize: (columns, rows) => {
          size.current = { columns, rows };
          say.current({ resize: size.current });
        },
        onSelection: setSelected,
      });
      setTerminal(made);
      return () => {
        setTerminal(null);
        made.dispose();
      };
    },
    [name],
  );
  const attach = useCallback(
    (socket: WebSocket, works: () => void) => {
      say.current = (m) => {
        if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(m));
      };
      say.current({ start: { terminal: 'xterm-256color', ...size.current } });
      terminal?.attach(socket);
      terminal?.focus();
      works();
    },
    [terminal],
  );
  const link = useLink(id, 'shell', terminal !== null, attach);
  const clipboard = globalThis.isSecureContext ? navigator.clipboard : undefined;
  const paste = () =>
    void clipboard
      ?.readText()
      .then((text) => (terminal?.paste(text), terminal?.focus()))
      .catch(() => undefined);
  const copy = () => void clipboard?.writeText(terminal?.selection() ?? '').catch(() => undefined);
  return (
    <ConsoleFrame
      link={link}
      actionsRef={actions}
      actions={
        clipboard && (
          <>
            <Button variant="secondary" size="sm" onClick={copy} isDisabled={!selected}>
              {t('common.copy')}
            </Button>
            <Button variant="secondary" size="sm" onClick={paste}>
              {t('console.paste')}
            </Button>
          </>
        )
      }
      help={t('console.shellHelp')}
    >
      <div role="group" aria-label={name} ref={mount} className="basalt-terminal" />
    </ConsoleFrame>
  );
}
