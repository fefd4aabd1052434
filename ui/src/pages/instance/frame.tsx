// The frame of a terminal or a screen: connection state, actions, and full screen.
import { Button } from '@patternfly/react-core';
import { useRef, type ReactNode, type RefObject } from 'react';
import type { Link } from '../../api/link';
import { useText } from '../../i18n';

interface Props {
  link: Link;
  actions: ReactNode;
  /** Where the focus moves when the user leaves by the keyboard. */
  actionsRef: RefObject<HTMLDivElement | null>;
  help: ReactNode;
  children: ReactNode;
}

export function ConsoleFrame({ link: { state, retry, again }, actions, actionsRef, help, children }: Props) {
  const { t } = useText();
  const frame = useRef<HTMLDivElement>(null);
  const broken = typeof state === 'object';
  const full = () =>
    void (document.fullscreenElement ? document.exitFullscreen() : frame.current?.requestFullscreen())?.catch(
      () => undefined,
    );
  const said =
    typeof state === 'string'
      ? t(`console.${state}`)
      : state.why === 'refused'
        ? t(again ? 'console.refused' : 'console.refusedShell', { message: state.message })
        : t(`console.${state.why}`);
  return (
    <div ref={frame} className="basalt-console">
      <div className="basalt-console-head">
        <div className="basalt-actions">
          <span role="status">{said}</span>
          {broken && (
            <Button variant="link" isInline onClick={retry}>
              {t(again ? 'console.retry' : 'console.again')}
            </Button>
          )}
        </div>
        <div ref={actionsRef} className="basalt-actions">
          {document.fullscreenEnabled && (
            <Button variant="secondary" size="sm" onClick={full}>
              {t('console.full')}
            </Button>
          )}
          {actions}
        </div>
      </div>
      {children}
      <p className="basalt-note">
        {t('console.leave')} {help}
      </p>
    </div>
  );
}
