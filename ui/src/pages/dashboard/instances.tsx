import { Button, Card, CardBody, CardFooter, CardTitle } from '@patternfly/react-core';
import { Link, useLocation } from 'wouter';
import { mostInstances as most, useInstances } from '../../api/queries';
import { may, type Session } from '../../api/session';
import { useText } from '../../i18n';
import { phaseKey, phaseOf, type Phase } from '../../lib/phase';
import { ErrorAlert } from '../../parts/error';
import { useProject } from '../../parts/project';

export function InstancesCard({ session }: { session: Session }) {
  const { t } = useText();
  const { project } = useProject();
  const [, go] = useLocation();
  const query = useInstances({ project, limit: most });
  const items = query.data?.items ?? [];
  const counts = new Map<Phase, number>();
  for (const i of items) counts.set(phaseOf(i), (counts.get(phaseOf(i)) ?? 0) + 1);
  return (
    <Card>
      <CardTitle component="h2">{t('dash.instances')}</CardTitle>
      <CardBody className="basalt-stack">
        <ErrorAlert error={query.error} />
        <p className="basalt-big">{query.data ? items.length : '…'}</p>
        {query.data?.continue && <p className="basalt-note">{t('dash.more', { n: most })}</p>}
        <ul>
          {[...counts].map(([p, n]) => (
            <li key={p}>
              {t(phaseKey(p))}: {n}
            </li>
          ))}
        </ul>
        {query.data && items.length === 0 && may(session, 'member') && (
          <p>
            <Button onClick={() => go('/instances/new')}>{t('dash.first')}</Button>
          </p>
        )}
      </CardBody>
      <CardFooter>
        <Link href="/instances">{t('dash.viewAll')}</Link>
      </CardFooter>
    </Card>
  );
}
