// One customer: its actions, and its views, each at its own address.
import { Button } from '@patternfly/react-core';
import { BuildingIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import {
  deleteOrganization,
  ownsOrganization,
  resumeOrganization,
  suspendOrganization,
  useChangeOrganization,
  useOrganization,
  type Organization,
} from '../../api/customers';
import { organizations } from '../../api/resource';
import { may, type Session } from '../../api/session';
import { Loading } from '../../parts/loading';
import { useText, type Key } from '../../i18n';
import { reasonOf } from '../../lib/organization';
import { asCommand, changeAsCurl } from '../../lib/shell';
import { ErrorAlert } from '../../parts/error';
import { FormDialog } from '../../parts/form-dialog';
import { Empty } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { useRemoval } from '../../parts/removal';
import { Same } from '../../parts/same';
import { StandingLabel } from '../../parts/standing';
import { TextField } from '../../parts/text-field';
import { Views } from '../../parts/views';
import { Budgets } from './budgets';
import { EditOrganization } from './edit';
import { Money } from './money';
import { Overview } from './overview';
import { People } from './people';
import { Projects } from './projects';
import { QuotaEditor } from './quota';

const views: { tab: string; text: Key }[] = [
  { tab: '', text: 'cust.overview' },
  { tab: 'projects', text: 'cust.projects' },
  { tab: 'people', text: 'cust.people' },
  { tab: 'quota', text: 'cust.quota' },
  { tab: 'money', text: 'cust.money' },
  { tab: 'budgets', text: 'cust.budgets' },
];

function Suspend({ organization: o, onClose }: { organization: Organization; onClose: () => void }) {
  const { t } = useText();
  const [reason, setReason] = useState('');
  const save = useChangeOrganization(o, onClose);
  return (
    <FormDialog
      title={t('cust.suspendTitle', { name: o.meta.name })}
      help={t('cust.suspendHelp')}
      action={t('cust.suspend')}
      busy={save.isPending}
      error={save.error}
      body={{ spec: { suspended: { reason } } }}
      onSubmit={() => save.mutate(suspendOrganization(reason.trim()))}
      onClose={onClose}
    >
      <TextField
        id="suspend-reason"
        path="spec.suspended.reason"
        label={t('cust.suspendReason')}
        value={reason}
        onChange={setReason}
      />
      <Same
        cli={asCommand(['organization', 'set', o.meta.name], { suspend: reason.trim() || 'REASON' })}
        curl={changeAsCurl(organizations, o, { ...o, spec: { ...o.spec, suspended: { reason: reason.trim() } } })}
      />
    </FormDialog>
  );
}

function Actions({ organization: o }: { organization: Organization }) {
  const { t } = useText();
  const [, go] = useLocation();
  const [asked, ask] = useState<'edit' | 'suspend' | null>(null);
  const resume = useChangeOrganization(o, () => undefined);
  const removal = useRemoval<Organization>({
    remove: (x) => deleteOrganization(x).then(() => go('/organizations')),
    title: (name) => t('cust.deleteTitle', { name }),
    help: t('cust.deleteHelp'),
    action: t('cust.delete'),
  });
  const close = () => ask(null);
  return (
    <>
      <Button onClick={() => ask('edit')}>{t('cust.edit')}</Button>
      {o.spec.suspended ? (
        <Button variant="secondary" isLoading={resume.isPending} onClick={() => resume.mutate(resumeOrganization)}>
          {t('cust.resume')}
        </Button>
      ) : (
        <Button variant="secondary" onClick={() => ask('suspend')}>
          {t('cust.suspend')}
        </Button>
      )}
      <Button variant="danger" onClick={() => removal.ask(o)}>
        {t('cust.delete')}
      </Button>
      <ErrorAlert error={resume.error} onClose={resume.reset} />
      {asked === 'edit' && <EditOrganization organization={o} onClose={close} />}
      {asked === 'suspend' && <Suspend organization={o} onClose={close} />}
      {removal.dialog}
    </>
  );
}

export function OrganizationPage({ session, id, tab }: { session: Session; id: string; tab: string }) {
  const { t } = useText();
  const query = useOrganization(id);
  const above = { href: '/organizations', title: t('cust.title') };
  if (query.isPending) return <Loading />;
  if (query.isError)
    return (
      <PageBody title={id} above={above}>
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
      </PageBody>
    );
  const o = query.data;
  if (!o)
    return (
      <PageBody title={t('cust.gone')} above={above}>
        <Empty
          title={t('cust.gone')}
          help={t('cust.goneHelp')}
          icon={BuildingIcon}
          action={<Link href="/organizations">{t('cust.toList')}</Link>}
        />
      </PageBody>
    );
  const owns = ownsOrganization(session, o);
  return (
    <PageBody title={o.meta.name} above={above} actions={owns && !o.meta.deletedAt && <Actions organization={o} />}>
      <div className="basalt-stack">
        <div role="status" aria-label={t('common.state')}>
          <StandingLabel organization={o} /> <span className="basalt-note">{reasonOf(o)}</span>
        </div>
        <Views
          label={t('cust.views', { name: o.meta.name })}
          views={views.map((v) => ({
            href: `/organizations/${id}${v.tab && `/${v.tab}`}`,
            title: t(v.text),
            active: v.tab === tab,
          }))}
        />
        {tab === '' && <Overview organization={o} />}
        {tab === 'projects' && <Projects organization={o} />}
        {tab === 'people' && <People organization={o} />}
        {tab === 'quota' && <QuotaEditor organization={o} owns={owns} />}
        {tab === 'money' && <Money organization={o} owns={owns} operator={may(session, 'operator')} />}
        {tab === 'budgets' && <Budgets organization={o} />}
      </div>
    </PageBody>
  );
}
