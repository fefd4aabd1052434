// A field for the payment card that is charged automatically.
import { saved, useCards } from '../api/cards';
import { useText } from '../i18n';
import { brandName } from '../lib/brand-name';
import { SelectField } from './text-field';

interface Props {
  id: string;
  organization: string | undefined;
  /** ID of the card; empty: the default card. */
  value: string;
  onChange: (card: string) => void;
}

/** CardField chooses a saved card, or the default at the time of a charge. */
export function CardField({ id, organization, value, onChange }: Props) {
  const { t } = useText();
  const cards = useCards(organization);
  return (
    <SelectField
      id={id}
      label={t('topup.card')}
      path="card"
      value={value}
      onChange={onChange}
      options={[
        ['', t('topup.cardDefault')],
        ...saved(cards.data?.items).map((c): [string, string] => [
          c.meta.id ?? '',
          t('card.ending', {
            brand: brandName(c.status?.brand) || t('card.brand'),
            digits: c.status?.lastDigits ?? '',
          }),
        ]),
      ]}
    />
  );
}
