// Issues the final invoice of an organization: a button that shows the amount and asks first.
import { Alert, Button } from '@patternfly/react-core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { Schemas } from '../api/client';
import { useFinalAmount, useIssueFinalInvoices } from '../api/final-invoices';
import { useText } from '../i18n';
import { formatMicros, formatPeriod } from '../lib/format';
import { asCommand, asCurl } from '../lib/shell';
import { ErrorAlert } from './error';
import { FormDialog } from './form-dialog';
import { Loading } from './loading';
import { Same } from './same';

type Final = Schemas['FinalInvoices'];

export function FinalInvoice({ organization }: { organization: string | undefined }) {
  const { t } = useText();
  const [open, setOpen] = useState(false);
  const [issued, setIssued] = useState<Final>();
  return (
    <>
      <Button variant="secondary" onClick={() => (setIssued(undefined), setOpen(true))}>
        {t('fin.issue')}
      </Button>
      {open && <Dialog organization={organization} onDone={setIssued} onClose={() => setOpen(false)} />}
      {issued && (
        <Alert component="p" variant="success" isInline isLiveRegion title={t('fin.issued')}>
          <Amounts invoices={issued} />
        </Alert>
      )}
    </>
  );
}

/** Amounts lists invoices with their periods and amounts; those that are not issued yet have no link. */
function Amounts({ invoices: f, tried }: { invoices: Final; tried?: boolean }) {
  const { language } = useText();
  return (
    <ul>
      {f.invoices.map((i) => (
        <li key={i.meta.id}>
          {tried ? '' : <Link href={`/invoices/${i.meta.id}`}>{i.spec.number}</Link>}{' '}
          {formatPeriod(i.spec.from, i.spec.to, language)}:{' '}
          {formatMicros(i.spec.totalMicros, i.spec.currency, language)}
        </li>
      ))}
    </ul>
  );
}

function Dialog({
  organization,
  onDone,
  onClose,
}: {
  organization: string | undefined;
  onDone: (f: Final) => void;
  onClose: () => void;
}) {
  const { t } = useText();
  const amount = useFinalAmount(organization);
  const issue = useIssueFinalInvoices(organization);
  return (
    <FormDialog
      title={t('fin.issue')}
      help={t('fin.help')}
      action={t('fin.issue')}
      busy={issue.isPending}
      disabled={!amount.data}
      error={issue.error}
      onSubmit={() => issue.mutate(undefined, { onSuccess: (f) => (onDone(f), onClose()) })}
      onClose={onClose}
    >
      <ErrorAlert error={amount.error} onRetry={() => void amount.refetch()} />
      {amount.isPending && <Loading />}
      {amount.data && <Amounts invoices={amount.data} tried />}
      <Same
        cli={asCommand(['invoice', 'final'], { organization })}
        curl={asCurl('POST', '/v1/final-invoices', { organization })}
      />
    </FormDialog>
  );
}
