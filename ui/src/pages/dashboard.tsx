import { Button, Card, CardBody, CardFooter, CardTitle, Progress, ProgressVariant } from '@patternfly/react-core';
import { lazy, Suspense, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { now, useBill } from '../api/invoices';
import { mostInstances as most, useInstances, useQuota, useWallet } from '../api/queries';
import { may, seesMachines, seesMoney, type Session } from '../api/session';
import { useText } from '../i18n';
import { formatBytes, formatDay, formatMicros } from '../lib/format';
import { balanceOf } from '../lib/organization';
import { month } from '../lib/period';
import { phaseKey, phaseOf, type Phase } from '../lib/phase';
import { quotas } from '../lib/quota';
import { ErrorAlert } from '../parts/error';
import { PageBody } from '../parts/page';
import { WorstAlerts } from './dashboard-alerts';
import { useProject } from '../parts/project';

const SetupCard = lazy(() => import('../parts/setup-card').then((m) => ({ default: m.SetupCard })));

function InstancesCard({ session }: { session: Session }) {
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

function QuotaCard() {
  const { t, has, language } = useText();
  const { project, organization } = useProject();
  const query = useQuota(project, organization);
  const { limits = {}, uses = {} } = query.data ?? {};
  // How many objects there may be of each kind has a default: it is shown when it comes near.
  const shown = (n: string) =>
    (quotas as readonly string[]).includes(n)
      ? limits[n] !== undefined || !!uses[n]
      : limits[n] !== undefined && 2 * (uses[n] ?? 0) >= limits[n];
  const names = [...new Set([...Object.keys(limits), ...Object.keys(uses)])].filter(shown);
  const show = (name: string, n: number) =>
    name.endsWith('Bytes') ? formatBytes(n, language) : new Intl.NumberFormat(language).format(n);
  return (
    <Card>
      <CardTitle component="h2">{t('dash.quota')}</CardTitle>
      <CardBody className="basalt-stack">
        <ErrorAlert error={query.error} />
        {!project && !organization && <p className="basalt-note">{t('dash.pickProject')}</p>}
        {query.data && names.length === 0 && <p className="basalt-note">{t('dash.noQuota')}</p>}
        {names.map((name) => {
          const key = `quota.${name}`;
          const title = has(key) ? t(key) : name;
          const [used, limit] = [uses[name] ?? 0, limits[name]];
          if (limit === undefined)
            return (
              <p key={name}>
                {title}: {t('dash.noLimit', { used: show(name, used) })}
              </p>
            );
          const percent = limit > 0 ? Math.min(100, (100 * used) / limit) : 100;
          return (
            <Progress
              key={name}
              id={`quota-${name}`}
              title={title}
              value={percent}
              size="sm"
              label={t('dash.of', { used: show(name, used), limit: show(name, limit) })}
              valueText={t('dash.of', { used: show(name, used), limit: show(name, limit) })}
              variant={percent >= 100 ? ProgressVariant.danger : percent >= 80 ? ProgressVariant.warning : undefined}
            />
          );
        })}
      </CardBody>
    </Card>
  );
}

function SpendCard() {
  const { t, language } = useText();
  const { organization } = useProject();
  const [period] = useState(() => month(new Date()));
  const preview = useBill(now, organization, period);
  const wallet = useWallet(organization, true);
  const balance = wallet.data && balanceOf(wallet.data.balanceMicros);
  return (
    <Card>
      <CardTitle component="h2">{t('dash.spend')}</CardTitle>
      <CardBody className="basalt-stack">
        <ErrorAlert error={preview.error} />
        {!organization && <p className="basalt-note">{t('usage.noOrganizationHelp')}</p>}
        {preview.data && (
          <>
            <p className="basalt-big">{formatMicros(preview.data.totalMicros, preview.data.currency, language)}</p>
            <p className="basalt-note">{t('dash.spendHelp', { from: formatDay(period.from, language) })}</p>
          </>
        )}
        {wallet.data && balance && (
          <p>
            {t(balance.key)}: {formatMicros(balance.micros, wallet.data.currency, language)}
          </p>
        )}
      </CardBody>
      <CardFooter className="basalt-actions">
        <Link href="/usage">{t('nav.usage')}</Link> <Link href="/invoices/now">{t('dash.spendWhy')}</Link>
      </CardFooter>
    </Card>
  );
}

export function Dashboard({ session }: { session: Session }) {
  const { t } = useText();
  return (
    <PageBody title={t('dash.title')}>
      <div className="basalt-columns">
        {may(session, 'operator') && <WorstAlerts />}
        {may(session, 'operator') && (
          <Suspense>
            <SetupCard session={session} />
          </Suspense>
        )}
        {seesMachines(session) && <InstancesCard session={session} />}
        {seesMachines(session) && <QuotaCard />}
        {seesMoney(session) && <SpendCard />}
      </div>
    </PageBody>
  );
}
