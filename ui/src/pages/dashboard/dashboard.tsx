// The dashboard of each role: operators see the cluster, sellers their customers, tenants their instances and
// costs.
import { lazy, Suspense } from 'react';
import { may, seesMachines, seesMoney, type Session } from '../../api/session';
import { useText, withWords } from '../../i18n';
import { PageBody } from '../../parts/page';
import { useProject } from '../../parts/project';
import { SetupCard } from '../../parts/setup-card';
import { FirstSteps } from './first-steps';
import { InstancesCard } from './instances';
import { QuotaCard } from './quota';
import { SpendCard } from './spend';

const Operator = lazy(withWords(() => import('./operator').then((m) => ({ default: m.OperatorCards }))));
const Seller = lazy(withWords(() => import('./seller').then((m) => ({ default: m.SellerCards }))));

export function Dashboard({ session }: { session: Session }) {
  const { t } = useText();
  const { organization } = useProject();
  const tenant = seesMachines(session) && !may(session, 'reseller');
  return (
    <PageBody title={t('dash.title')}>
      <div className="basalt-stack">
        <Suspense>
          {may(session, 'operator') && <Operator />}
          {may(session, 'operator') && <SetupCard session={session} />}
          {tenant && may(session, 'member') && <FirstSteps />}
          {may(session, 'reseller') && <Seller session={session} />}
        </Suspense>
        <div className="basalt-columns">
          {seesMachines(session) && <InstancesCard session={session} />}
          {seesMachines(session) && (tenant || organization) && <QuotaCard />}
          {seesMoney(session) && (!may(session, 'reseller') || organization) && <SpendCard />}
        </div>
      </div>
    </PageBody>
  );
}
