// The payment cards of an organization. A card is entered on the payment provider's page.
import { Button, Card, CardBody, CardTitle, Label } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { deleteCard, useAddCard, useCards, useDefaultCard, type PaymentCard } from '../api/cards';
import { useWallet } from '../api/queries';
import { useText, type Key } from '../i18n';
import { told } from '../lib/cause';
import { brandName } from '../lib/brand-name';
import { AutoPayCard } from './auto-pay';
import { Confirm } from './confirm';
import { ErrorAlert } from './error';
import { Note } from './told';
import { TopUpCard } from './top-up';

const states = {
  Opening: 'card.state.Open',
  Open: 'card.state.Open',
  Saved: 'card.state.Saved',
  Failed: 'card.state.Failed',
  Expired: 'card.state.Expired',
} as const satisfies Record<string, Key>;

const leave = (url: string) => location.assign(url);

interface Props {
  organization: string | undefined;
  /** Opens another page; replaced in tests. */
  to?: (url: string) => void;
}

/** PaymentMethods shows the cards on file and the automatic top-up or payment; it renders nothing if the organization cannot pay
 * by card. */
export function PaymentMethods({ organization, to = leave }: Props) {
  const wallet = useWallet(organization, true);
  if (!wallet.data?.cards) return null;
  return (
    <div className="basalt-split">
      <CardList organization={organization} to={to} />
      {wallet.data.topUp && <TopUpCard organization={organization} currency={wallet.data.currency} />}
      {wallet.data.autoPay && <AutoPayCard organization={organization} />}
    </div>
  );
}

function CardList({ organization, to }: { organization: string | undefined; to: (url: string) => void }) {
  const { t } = useText();
  const cards = useCards(organization);
  const add = useAddCard(organization, to);
  const items = cards.data?.items ?? [];
  return (
    <Card>
      <CardTitle component="h2">{t('card.title')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('card.help')}</p>
        <ErrorAlert error={cards.error} onRetry={() => void cards.refetch()} />
        {cards.data && items.length === 0 && <p>{t('card.empty')}</p>}
        {items.length > 0 && (
          <ul aria-label={t('card.title')}>
            {items.map((c) => (
              <CardItem key={c.meta.id} card={c} organization={organization} />
            ))}
          </ul>
        )}
        <div>
          <Button
            variant="secondary"
            isLoading={add.isPending}
            isDisabled={add.isPending || add.isSuccess}
            onClick={() => add.mutate()}
          >
            {t('card.add')}
          </Button>
        </div>
        <ErrorAlert error={add.error} />
      </CardBody>
    </Card>
  );
}

function CardItem({ card: c, organization }: { card: PaymentCard; organization: string | undefined }) {
  const { t } = useText();
  const client = useQueryClient();
  const [going, setGoing] = useState(false);
  const choose = useDefaultCard(organization);
  const remove = useMutation({
    mutationFn: deleteCard,
    onSuccess: () => (setGoing(false), client.invalidateQueries({ queryKey: ['Card', 'list'] })),
  });
  const s = c.status;
  const state = s?.state ?? 'Opening';
  const digits = s?.lastDigits ?? '';
  if (state !== 'Saved')
    return (
      <li>
        {t(states[state])} <Note of={told(s?.lastError, s?.cause)} />{' '}
        {state === 'Open' && s?.url?.startsWith('https://') && <a href={s.url}>{t('card.continue')}</a>}
      </li>
    );
  return (
    <li>
      {t('card.ending', { brand: brandName(s?.brand) || t('card.brand'), digits })},{' '}
      {t('card.expires', { month: String(s?.expiryMonth).padStart(2, '0'), year: String(s?.expiryYear) })}{' '}
      {s?.default ? (
        <Label color="blue">{t('card.default')}</Label>
      ) : (
        <Button
          variant="link"
          isInline
          isDisabled={choose.isPending}
          aria-label={t('card.chooseOf', { digits })}
          onClick={() => choose.mutate(c.meta.id ?? '')}
        >
          {t('card.choose')}
        </Button>
      )}{' '}
      <Button
        variant="link"
        isInline
        isDanger
        aria-label={t('card.removeOf', { digits })}
        onClick={() => (remove.reset(), setGoing(true))}
      >
        {t('card.remove')}
      </Button>
      <ErrorAlert error={choose.error} />
      {going && (
        <Confirm
          title={t('card.removeOf', { digits })}
          help={t('card.removeHelp')}
          action={t('card.remove')}
          danger
          busy={remove.isPending}
          error={remove.error}
          onConfirm={() => remove.mutate(c)}
          onClose={() => setGoing(false)}
        />
      )}
    </li>
  );
}
