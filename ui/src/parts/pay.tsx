// Paying by card: a button that starts it, and a dialog for the amount. The payment provider's page asks for the
// card.
import { Button } from '@patternfly/react-core';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type { Schemas } from '../api/client';
import { saved, useCards, type PaymentCard } from '../api/cards';
import { useBeginCheckout } from '../api/payments';
import { useText } from '../i18n';
import { formatMicros } from '../lib/format';
import { asCommand, asCurl } from '../lib/shell';
import { Confirm } from './confirm';
import { ErrorAlert } from './error';
import { FormDialog } from './form-dialog';
import { MoneyField, moneyText } from './money-field';
import { Same } from './same';

type Wallet = Schemas['Wallet'];

const leave = (url: string) => location.assign(url);

interface Props {
  wallet: Wallet;
  /** Opens another page; replaced in tests. */
  to?: (url: string) => void;
}

/** AddFunds pays in advance; it renders nothing if the organization cannot pay by card. */
export function AddFunds({ wallet, to = leave }: Props) {
  const { t } = useText();
  const [open, setOpen] = useState(false);
  if (!wallet.cards) return null;
  return (
    <>
      <Button variant="secondary" onClick={() => setOpen(true)}>
        {t('pay.add')}
      </Button>
      {open && <Dialog wallet={wallet} cards={wallet.cards} to={to} onClose={() => setOpen(false)} />}
    </>
  );
}

function Dialog({
  wallet: w,
  cards,
  to,
  onClose,
}: {
  wallet: Wallet;
  cards: Schemas['CardPayments'];
  to: (url: string) => void;
  onClose: () => void;
}) {
  const { t, language } = useText();
  const begin = useBeginCheckout(w.organization, to);
  const [micros, setMicros] = useState<number>();
  const money = (m: number) => formatMicros(m, w.currency, language);
  const body: Schemas['Checkout'] = {
    kind: 'Checkout',
    meta: { name: '', organization: w.organization },
    spec: { amountMicros: micros ?? NaN },
  };
  return (
    <FormDialog
      title={t('pay.add')}
      help={t('pay.help')}
      action={t('pay.continue')}
      busy={begin.isPending || begin.isSuccess}
      error={begin.error}
      schema="Checkout"
      body={body}
      onSubmit={() => begin.mutate(body.spec)}
      onClose={onClose}
    >
      <MoneyField
        id="pay-amount"
        label={t('cust.amount', { currency: w.currency })}
        help={t('pay.limits', { min: money(cards.minMicros), max: money(cards.maxMicros) })}
        path="spec.amountMicros"
        micros={micros}
        onChange={setMicros}
        required
      />
      <Same
        cli={asCommand(['checkout', 'create', moneyText(micros) || 'AMOUNT'], {
          organization: w.organization,
        })}
        curl={asCurl('POST', '/v1/checkouts', body)}
      />
    </FormDialog>
  );
}

/** PayOnFile charges a card on file for an open invoice, and shows the result. */
function PayOnFile({ wallet: w, open, card }: { wallet: Wallet; open: Schemas['OpenInvoice']; card: PaymentCard }) {
  const { t, language } = useText();
  const [, navigate] = useLocation();
  const [asked, setAsked] = useState(false);
  const pay = useBeginCheckout(w.organization, () => undefined);
  const digits = card.status?.lastDigits ?? '';
  return (
    <>
      <Button
        variant="link"
        isInline
        aria-label={t('pay.onFileOf', { number: open.number, digits })}
        onClick={() => (pay.reset(), setAsked(true))}
      >
        {t('pay.onFile', { digits })}
      </Button>
      {asked && (
        <Confirm
          title={t('pay.onFileOf', { number: open.number, digits })}
          help={t('pay.onFileHelp', { amount: formatMicros(open.leftMicros, w.currency, language) })}
          action={t('pay.invoice')}
          busy={pay.isPending}
          error={pay.error}
          onConfirm={() =>
            pay.mutate(
              { invoice: open.invoice, card: card.meta.id },
              { onSuccess: (c) => navigate(`/checkouts/${c.meta.id}`) },
            )
          }
          onClose={() => setAsked(false)}
        />
      )}
    </>
  );
}

/** PayInvoice pays the remaining amount of an open invoice. */
export function PayInvoice({ wallet: w, invoice, to = leave }: Props & { invoice: string }) {
  const { t } = useText();
  const begin = useBeginCheckout(w.organization, to);
  const open = w.open?.find((i) => i.invoice === invoice);
  const cards = useCards(w.organization, Boolean(w.cards && open));
  const card = saved(cards.data?.items).find((c) => c.status?.default);
  if (!w.cards || !open) return null;
  return (
    <>
      <Button
        variant="link"
        isInline
        isLoading={begin.isPending}
        isDisabled={begin.isPending || begin.isSuccess}
        aria-label={t('pay.invoiceOf', { number: open.number })}
        onClick={() => begin.mutate({ invoice })}
      >
        {t('pay.invoice')}
      </Button>{' '}
      {card && <PayOnFile wallet={w} open={open} card={card} />}
      <ErrorAlert error={begin.error} />
    </>
  );
}
