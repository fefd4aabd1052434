// The history of an instance's state, as far as the cluster keeps it.
import { Card, CardBody, CardTitle } from '@patternfly/react-core';
import type { Instance } from '../../api/client';
import { useHistory, type InstanceEvent } from '../../api/tenant';
import { useText } from '../../i18n';
import { told } from '../../lib/cause';
import { formatTime } from '../../lib/format';
import { ErrorAlert } from '../../parts/error';
import { useTell } from '../../parts/told';

function Change({ event: e }: { event: InstanceEvent }) {
  const { t, has, language } = useText();
  const tell = useTell();
  const operation = `did.${e.operation}`;
  const state = `phase.${e.state}`;
  // Operations on other objects, such as a service, change an instance too.
  const did = t(has(operation) ? operation : 'did.UpdateInstance');
  const words = e.operation ? did : has(state) ? t(state) : e.state;
  return (
    <li>
      <time className="basalt-note" dateTime={e.at}>
        {formatTime(e.at, language)}
      </time>{' '}
      {words}
      {e.message && `: ${tell(told(e.message, e.cause))}`}
    </li>
  );
}

export function Events({ instance }: { instance: Instance }) {
  const { t } = useText();
  const history = useHistory(instance);
  return (
    <Card>
      <CardTitle component="h2">{t('one.events')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('one.eventsHelp')}</p>
        <ErrorAlert error={history.error} onRetry={() => void history.refetch()} />
        {history.data?.items.length === 0 && <p>{t('one.noEvents')}</p>}
        {/* A list that scrolls must be reachable by the keyboard. */}
        <ol
          aria-live="polite"
          aria-label={t('one.events')}
          className="basalt-stack basalt-events basalt-history"
          // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
          tabIndex={0}
        >
          {history.data?.items.map((e) => (
            <Change key={e.revision} event={e} />
          ))}
        </ol>
      </CardBody>
    </Card>
  );
}
