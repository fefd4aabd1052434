// The screen of an instance, through VNC.
import { Button } from '@patternfly/react-core';
import RFB from '@novnc/novnc';
import { useCallback, useRef, useState, type KeyboardEvent } from 'react';
import { useLink } from '../../api/link';
import { useText } from '../../i18n';
import { leaves } from '../../lib/keys';
import { ConsoleFrame } from './frame';

// From X11's keysymdef.h: the keys that are held down when the user leaves by the keyboard.
const held: [number, string][] = [
  [0xffe3, 'ControlLeft'],
  [0xffe1, 'ShiftLeft'],
];

export default function Screen({ id }: { id: string }) {
  const { t } = useText();
  const [box, setBox] = useState<HTMLDivElement | null>(null);
  const viewer = useRef<RFB | null>(null);
  const actions = useRef<HTMLDivElement>(null);
  const name = t('console.screenName');
  const attach = useCallback(
    (socket: WebSocket, works: () => void) => {
      if (!box) return;
      const made = new RFB(box, socket, { shared: true });
      made.scaleViewport = true;
      made.background = 'transparent';
      made.addEventListener('connect', works);
      const canvas = box.querySelector('canvas');
      if (canvas) {
        canvas.tabIndex = 0;
        canvas.setAttribute('role', 'application');
        canvas.setAttribute('aria-label', name);
      }
      viewer.current = made;
      socket.addEventListener('close', () => {
        viewer.current = null;
      });
    },
    [box, name],
  );
  const link = useLink(id, 'vnc', box !== null, attach);
  const leave = (e: KeyboardEvent) => {
    if (!leaves(e.nativeEvent)) return;
    e.preventDefault();
    e.stopPropagation();
    for (const [keysym, code] of held) viewer.current?.sendKey(keysym, code, false);
    actions.current?.querySelector('button')?.focus();
  };
  return (
    <ConsoleFrame
      link={link}
      actionsRef={actions}
      actions={
        <Button
          variant="secondary"
          size="sm"
          isDisabled={link.state !== 'open'}
          onClick={() => (viewer.current?.sendCtrlAltDel(), viewer.current?.focus())}
        >
          {t('console.ctrlAltDel')}
        </Button>
      }
      help={t('console.screenHelp')}
    >
      <div ref={setBox} className="basalt-screen" onKeyDownCapture={leave} />
    </ConsoleFrame>
  );
}
