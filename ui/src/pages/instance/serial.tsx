// The serial console: a terminal.
import { Button } from '@patternfly/react-core';
import { useCallback, useRef, useState } from 'react';
import { useEarlier, useLink } from '../../api/link';
import { Loading } from '../../parts/loading';
import { useText } from '../../i18n';
import { openTerminal, type ConsoleTerminal } from '../../lib/terminal';
import { ConsoleFrame } from './frame';
import '@xterm/xterm/css/xterm.css';

/** Serial begins with the previous output of the console. */
export default function Serial({ id }: { id: string }) {
  const earlier = useEarlier(id);
  return earlier.isPending ? <Loading /> : <Connected id={id} earlier={earlier.data ?? ''} />;
}

function Connected({ id, earlier }: { id: string; earlier: string }) {
  const { t } = useText();
  const [terminal, setTerminal] = useState<ConsoleTerminal | null>(null);
  const [size, setSize] = useState('');
  const [selected, setSelected] = useState(false);
  const actions = useRef<HTMLDivElement>(null);
  const name = t('console.serialName');
  const mount = useCallback(
    (box: HTMLDivElement) => {
      const made = openTerminal(box, {
        name,
        earlier,
        onLeave: () => actions.current?.querySelector('button')?.focus(),
        onSize: (columns, rows) => setSize(`stty rows ${rows} cols ${columns}`),
        onSelection: setSelected,
      });
      setTerminal(made);
      return () => {
        setTerminal(null);
        made.dispose();
      };
    },
    [name, earlier],
  );
  const attach = useCallback(
    (socket: WebSocket, works: () => void) => {
      terminal?.attach(socket);
      works();
    },
    [terminal],
  );
  const link = useLink(id, 'console', terminal !== null, attach);
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
      help={
        <>
          {t('console.serialHelp')} <code>{size}</code>
        </>
      }
    >
      <div role="group" aria-label={name} ref={mount} className="basalt-terminal" />
    </ConsoleFrame>
  );
}
