// A customer's invoices and payments, and the resulting balances of its accounts.
import { Button, Title } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { api, base, ok, type Schemas } from '../../api/client';
import { useLedger, type Organization } from '../../api/customers';
import { useWallet } from '../../api/queries';
import { RecordPayment } from '../../forms/payment';
import { useText } from '../../i18n';
import { formatDay, formatMicros, formatPeriod } from '../../lib/format';
import { asCommand, asCurl } from '../../lib/shell';
import { ObjectList, useListing, type Column } from '../../parts/list';
import { FinalInvoice } from '../../parts/final-invoice';
import { PaymentMethods } from '../../parts/payment-cards';
import { Same } from '../../parts/same';
import { FormDialog } from '../../parts/form-dialog';
import { TextField } from '../../parts/text-field';
import { Payments } from '../payments/payments';
import { WalletCard } from './overview';
import { Time } from '../../parts/time';
import { WholesaleCard } from './wholesale';
import { collections } from '../../api/collection';

type Invoice = Schemas['Invoice'];

function PaymentsAndRecording({ organization: o, owns }: { organization: Organization; owns: boolean }) {
  const { t } = useText();
  const [adding, setAdding] = useState(false);
  const currency = useWallet(o.meta.id, true).data?.currency;
  const add = owns && currency && (
    <Button variant="secondary" onClick={() => setAdding(true)}>
      {t('cust.paymentAdd')}
    </Button>
  );
  return (
    <>
      <Payments organization={o.meta.id ?? ''} add={add} />
      {adding && currency && <RecordPayment organization={o} currency={currency} onClose={() => setAdding(false)} />}
    </>
  );
}

function CreditInvoice({ invoice: i, onClose }: { invoice: Invoice; onClose: () => void }) {
  const { t } = useText();
  const client = useQueryClient();
  const [reason, setReason] = useState('');
  const body: Schemas['CreditNote'] = {
    kind: 'CreditNote',
    meta: { name: '', organization: i.meta.organization },
    spec: { invoice: i.meta.id ?? '', reason: reason.trim() },
  };
  const create = useMutation({
    mutationFn: () => ok(api.POST('/v1/credit-notes', { body })),
    onSuccess: () => {
      for (const queryKey of [
        ['CreditNote', 'list'],
        ['wallet', i.meta.organization],
        ['ledger', i.meta.organization],
        ['revenue'],
      ])
        void client.invalidateQueries({ queryKey });
      onClose();
    },
  });
  return (
    <FormDialog
      title={t('cust.creditNoteTitle', { number: i.spec.number })}
      help={t('cust.creditNoteHelp')}
      action={t('cust.creditNote')}
      busy={create.isPending}
      error={create.error}
      schema="CreditNote"
      body={body}
      onSubmit={create.mutate}
      onClose={onClose}
    >
      <TextField
        id="credit-reason"
        path="spec.reason"
        label={t('cust.creditNoteReason')}
        value={reason}
        onChange={setReason}
        required
      />
      <Same
        cli={asCommand(['invoice', 'credit', i.meta.name], { reason: body.spec.reason || 'REASON' })}
        curl={asCurl('POST', '/v1/credit-notes', body)}
      />
    </FormDialog>
  );
}

const pdf = (kind: 'invoices' | 'credit-notes', id: string | undefined) =>
  `${base}/v1/${kind}/${encodeURIComponent(id ?? '')}/pdf`;

function Invoices({ organization: o, owns }: { organization: Organization; owns: boolean }) {
  const { t, language } = useText();
  const [crediting, setCrediting] = useState<Invoice | null>(null);
  const list = useListing(collections.invoices, {
    fixed: { organization: o.meta.id },
    sort: '-spec.issuedAt',
    prefix: 'invoices.',
  });
  const columns: Column<Invoice>[] = [
    {
      id: 'number',
      sort: 'spec.number',
      title: t('inv.number'),
      cell: (i) => <Link href={`/invoices/${i.meta.id}`}>{i.spec.number}</Link>,
    },
    {
      id: 'period',
      sort: 'spec.from',
      title: t('inv.period'),
      cell: (i) => formatPeriod(i.spec.from, i.spec.to, language),
    },
    { id: 'due', sort: 'spec.dueAt', title: t('inv.due'), cell: (i) => formatDay(i.spec.dueAt, language) },
    {
      id: 'total',
      sort: 'spec.totalMicros',
      title: t('inv.total'),
      value: (i) => i.spec.totalMicros / 1e6,
      cell: (i) => <span className="basalt-number">{formatMicros(i.spec.totalMicros, i.spec.currency, language)}</span>,
    },
    {
      id: 'pdf',
      control: true,
      title: t('inv.pdf'),
      cell: (i) => (
        <a
          href={pdf('invoices', i.meta.id)}
          download={`${i.spec.number}.pdf`}
          aria-label={t('inv.pdfOf', { number: i.spec.number })}
        >
          {t('inv.pdf')}
        </a>
      ),
    },
    ...(owns
      ? [
          {
            id: 'actions',
            control: true,
            title: t('common.actions'),
            cell: (i: Invoice) => (
              <Button
                variant="link"
                isInline
                aria-label={t('cust.creditNoteOf', { number: i.spec.number })}
                onClick={() => setCrediting(i)}
              >
                {t('cust.creditNote')}
              </Button>
            ),
          },
        ]
      : []),
  ];
  return (
    <section className="basalt-stack">
      <Title headingLevel="h2" size="lg">
        {t('inv.title')}
      </Title>
      <ObjectList
        name="customer-invoices"
        label={t('inv.title')}
        columns={columns}
        list={list}
        keyOf={(i) => i.meta.id ?? i.spec.number}
        empty={<p className="basalt-note">{t('cust.invoicesEmpty')}</p>}
      />
      {o.spec.billing && (
        <div>
          <FinalInvoice organization={o.meta.id} />
        </div>
      )}
      {crediting && <CreditInvoice invoice={crediting} onClose={() => setCrediting(null)} />}
    </section>
  );
}

function CreditNotes({ organization: o }: { organization: Organization }) {
  const { t, language } = useText();
  const list = useListing(collections.creditNotes, {
    fixed: { organization: o.meta.id },
    sort: '-spec.issuedAt',
    prefix: 'credit-notes.',
  });
  const columns: Column<Schemas['CreditNote']>[] = [
    { id: 'number', sort: 'spec.number', title: t('inv.number'), cell: (n) => n.spec.number },
    {
      id: 'issued',
      sort: 'spec.issuedAt',
      title: t('inv.issued'),
      value: (n) => n.spec.issuedAt,
      cell: (n) => <Time at={n.spec.issuedAt} />,
    },
    { id: 'reason', sort: 'spec.reason', title: t('cust.reason'), cell: (n) => n.spec.reason || '–' },
    {
      id: 'total',
      sort: 'spec.totalMicros',
      title: t('inv.total'),
      cell: (n) => (
        <span className="basalt-number">
          {formatMicros(n.spec.totalMicros ?? 0, n.spec.currency ?? 'EUR', language)}
        </span>
      ),
    },
    {
      id: 'pdf',
      control: true,
      title: t('inv.pdf'),
      cell: (n) => (
        <a
          href={pdf('credit-notes', n.meta.id)}
          download={`${n.spec.number}.pdf`}
          aria-label={t('inv.pdfOf', { number: n.spec.number ?? '' })}
        >
          {t('inv.pdf')}
        </a>
      ),
    },
  ];
  return (
    <section className="basalt-stack">
      <Title headingLevel="h2" size="lg">
        {t('cust.creditNotes')}
      </Title>
      <ObjectList
        name="credit-notes"
        label={t('cust.creditNotes')}
        columns={columns}
        list={list}
        keyOf={(n) => n.meta.id ?? n.meta.name}
        empty={<p className="basalt-note">{t('cust.creditNoteEmpty')}</p>}
      />
    </section>
  );
}

function Ledger({ organization: o }: { organization: Organization }) {
  const { t, language } = useText();
  const query = useLedger(o.meta.id ?? '');
  const columns: Column<Schemas['LedgerAccount']>[] = [
    { id: 'ledgerAccount', title: t('cust.ledgerAccount'), cell: (a) => <code>{a.account}</code> },
    {
      id: 'balance',
      title: t('cust.balance'),
      cell: (a) => <span className="basalt-number">{formatMicros(a.balanceMicros, a.currency, language)}</span>,
    },
  ];
  return (
    <section className="basalt-stack">
      <Title headingLevel="h2" size="lg">
        {t('cust.ledger')}
      </Title>
      <p className="basalt-note">{t('cust.ledgerHelp')}</p>
      <ObjectList
        label={t('cust.ledger')}
        columns={columns}
        query={{ ...query, data: query.data && { items: query.data.accounts } }}
        keyOf={(a) => `${a.account} ${a.currency}`}
        empty={<p className="basalt-note">{t('cust.ledgerEmpty')}</p>}
      />
    </section>
  );
}

export function Money({
  organization,
  owns,
  operator,
}: {
  organization: Organization;
  owns: boolean;
  operator: boolean;
}) {
  return (
    <div className="basalt-stack">
      <WalletCard id={organization.meta.id} mode={organization.spec.billing?.mode} />
      <PaymentMethods organization={organization.meta.id} />
      <WholesaleCard organization={organization} operator={operator} />
      <PaymentsAndRecording organization={organization} owns={owns} />
      <Invoices organization={organization} owns={owns} />
      <CreditNotes organization={organization} />
      <Ledger organization={organization} />
    </div>
  );
}
