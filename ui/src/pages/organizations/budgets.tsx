// A customer's budgets.
import { Button } from '@patternfly/react-core';
import { PiggyBankIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../../api/client';
import { useProjectsOf, type Organization } from '../../api/customers';
import { useWallet } from '../../api/queries';
import { useText } from '../../i18n';
import { parseMicros } from '../../lib/amount';
import { formatMicros, formatPercent } from '../../lib/format';
import { asCommand, asCurl } from '../../lib/shell';
import { FormDialog } from '../../parts/form-dialog';
import { Empty, ObjectList, useListing, type Column } from '../../parts/list';
import { useRemoval } from '../../parts/removal';
import { Same } from '../../parts/same';
import { SelectField, TextField } from '../../parts/text-field';
import { collections } from '../../api/collection';

type Budget = Schemas['Budget'];
const caps = ['none', 'stop', 'suspend'] as const;

function CreateBudget({
  organization: o,
  currency,
  onClose,
}: {
  organization: Organization;
  currency: string;
  onClose: () => void;
}) {
  const { t } = useText();
  const client = useQueryClient();
  const projects = useProjectsOf({ organization: o.meta.id, limit: 1000 });
  const [form, setForm] = useState({
    name: 'monthly',
    amount: '',
    project: '',
    alerts: '50, 80, 100',
    cap: 'none' as (typeof caps)[number],
  });
  const set = (name: keyof typeof form) => (v: string) => setForm((f) => ({ ...f, [name]: v }));
  const micros = parseMicros(form.amount);
  const percents = form.alerts
    .split(/[\s,;]+/)
    .filter(Boolean)
    .map(Number);
  const body: Budget = {
    kind: 'Budget',
    meta: { name: form.name.trim(), organization: o.meta.id },
    spec: {
      amountMicros: micros ?? NaN,
      cap: form.cap,
      ...(form.project && { project: form.project }),
      ...(percents.length > 0 && { alertPercents: percents }),
    },
  };
  const create = useMutation({
    mutationFn: () => ok(api.POST('/v1/budgets', { body })),
    onSuccess: () => (void client.invalidateQueries({ queryKey: ['Budget', 'list'] }), onClose()),
  });
  return (
    <FormDialog
      title={t('cust.budgetCreate')}
      action={t('common.create')}
      busy={create.isPending}
      error={create.error}
      schema="Budget"
      body={body}
      onSubmit={create.mutate}
      onClose={onClose}
    >
      <TextField
        id="budget-name"
        label={t('common.name')}
        path="meta.name"
        value={form.name}
        onChange={set('name')}
        required
      />
      <TextField
        id="budget-amount"
        label={t('cust.budgetAmountIn', { currency })}
        path="spec.amountMicros"
        value={form.amount}
        onChange={set('amount')}
        required
      />
      <SelectField
        id="budget-project"
        label={t('common.project')}
        path="spec.project"
        value={form.project}
        onChange={set('project')}
        options={[
          ['', t('key.whole')],
          ...(projects.data?.items ?? []).map((p): [string, string] => [p.meta.id ?? '', p.meta.name]),
        ]}
      />
      <TextField
        id="budget-alerts"
        label={t('cust.budgetAlerts')}
        help={t('cust.budgetAlertsHelp')}
        path="spec.alertPercents"
        value={form.alerts}
        onChange={set('alerts')}
      />
      <SelectField
        id="budget-cap"
        label={t('cust.budgetCap')}
        path="spec.cap"
        value={form.cap}
        onChange={set('cap')}
        options={caps.map((c) => [c, t(`cust.cap.${c}`)])}
      />
      <Same
        cli={asCommand(['budget', 'create', body.meta.name || 'NAME'], {
          organization: o.meta.name,
          amount: form.amount || 'AMOUNT',
          of: projects.data?.items.find((p) => p.meta.id === form.project)?.meta.name,
          alert: percents.join(','),
          cap: form.cap,
        })}
        curl={asCurl('POST', '/v1/budgets', body)}
      />
    </FormDialog>
  );
}

export function Budgets({ organization: o }: { organization: Organization }) {
  const { t, language } = useText();
  const [creating, setCreating] = useState(false);
  const list = useListing(collections.budgets, { fixed: { organization: o.meta.id } });
  const projects = useProjectsOf({ organization: o.meta.id, limit: 1000 });
  const currency = useWallet(o.meta.id, true).data?.currency ?? 'EUR';
  const removal = useRemoval<Budget>({
    remove: (b) => ok(api.DELETE('/v1/budgets/{id}', { params: { path: { id: b.meta.id ?? '' } } })),
    title: (name) => t('cust.budgetDelete', { name }),
    help: t('cust.budgetDeleteHelp'),
  });
  const create = (
    <Button variant="secondary" onClick={() => setCreating(true)}>
      {t('cust.budgetCreate')}
    </Button>
  );
  const spent = ({ spec, status: s }: Budget) =>
    s?.spentMicros === undefined
      ? '–'
      : `${formatMicros(s.spentMicros, currency, language)} (${formatPercent((100 * s.spentMicros) / spec.amountMicros, language)})`;
  const columns: Column<Budget>[] = [
    { id: 'name', sort: 'name', title: t('common.name'), cell: (b) => b.meta.name },
    {
      id: 'project',
      sort: 'spec.project',
      title: t('common.project'),
      cell: (b) =>
        projects.data?.items.find((p) => p.meta.id === b.spec.project)?.meta.name ?? b.spec.project ?? t('key.whole'),
    },
    {
      id: 'budgetAmount',
      sort: 'spec.amountMicros',
      title: t('cust.budgetAmount'),
      cell: (b) => <span className="basalt-number">{formatMicros(b.spec.amountMicros, currency, language)}</span>,
    },
    {
      id: 'budgetSpent',
      sort: 'status.spentMicros',
      title: t('cust.budgetSpent'),
      cell: (b) => <span className="basalt-number">{spent(b)}</span>,
    },
    {
      id: 'budgetAlerts',
      title: t('cust.budgetAlerts'),
      cell: (b) => b.spec.alertPercents?.join(', ') || t('common.none'),
    },
    {
      id: 'budgetCap',
      sort: 'spec.cap',
      title: t('cust.budgetCap'),
      cell: (b) => t(`cust.cap.${b.spec.cap ?? 'none'}`),
    },
    {
      id: 'actions',
      control: true,
      title: t('common.actions'),
      cell: (b) => (
        <Button
          variant="link"
          isInline
          isDanger
          aria-label={`${t('common.delete')}: ${b.meta.name}`}
          onClick={() => removal.ask(b)}
        >
          {t('common.delete')}
        </Button>
      ),
    },
  ];
  return (
    <div className="basalt-stack">
      {(list.query.data?.items.length ?? 0) > 0 && <div>{create}</div>}
      <ObjectList
        name="customer-budgets"
        label={t('cust.budgets')}
        columns={columns}
        list={list}
        bulk={[removal.bulk()]}
        keyOf={(b) => b.meta.id ?? b.meta.name}
        empty={
          <Empty title={t('cust.budgetEmpty')} help={t('cust.budgetEmptyHelp')} icon={PiggyBankIcon} action={create} />
        }
      />
      {creating && <CreateBudget organization={o} currency={currency} onClose={() => setCreating(false)} />}
      {removal.dialog}
    </div>
  );
}
