// How an instance's state has changed.
import { Card, CardBody, CardTitle } from '@patternfly/react-core';
import { useState } from 'react';
import type { Instance } from '../../api/client';
import { useText } from '../../i18n';
import { formatTime } from '../../lib/format';
import { noteOf, phaseKey, phaseOf } from '../../lib/phase';

interface Seen {
  at: string;
  revision: number;
  phase: ReturnType<typeof phaseOf>;
  note: string;
}

const maxSeen = 50;

/** useSeen is how an instance's state has changed while the page was open, newest first. */
export function useSeen(i: Instance | null | undefined): Seen[] {
  const [seen, set] = useState<Seen[]>([]);
  const last = seen[0];
  if (i && (i.meta.revision ?? 0) > (last?.revision ?? -1)) {
    const now = { at: i.meta.updatedAt ?? '', revision: i.meta.revision ?? 0, phase: phaseOf(i), note: noteOf(i) };
    if (!last || last.phase !== now.phase || last.note !== now.note) set([now, ...seen].slice(0, maxSeen));
  }
  return seen;
}

export function Events({ seen }: { seen: Seen[] }) {
  const { t, language } = useText();
  return (
    <Card>
      <CardTitle component="h2">{t('one.events')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('one.eventsHelp')}</p>
        <ol aria-live="polite" aria-label={t('one.events')} className="basalt-stack basalt-events">
          {seen.map((e) => (
            <li key={e.revision}>
              <span className="basalt-note">{formatTime(e.at, language)}</span> {t(phaseKey(e.phase))}
              {e.note && `: ${e.note}`}
            </li>
          ))}
        </ol>
      </CardBody>
    </Card>
  );
}
