// Rounded quantities and amounts, with the exact value in a tooltip: on hover, and on focus for the keyboard.
import { Tooltip } from '@patternfly/react-core';
import { useText } from '../i18n';
import { exactMicros, exactQuantity, formatMicros, formatQuantity } from '../lib/format';

function Exact({ shown, exact }: { shown: string; exact: string }) {
  if (exact === shown) return <span className="basalt-number">{shown}</span>;
  return (
    <Tooltip content={exact}>
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- the tooltip is shown on focus too */}
      <span className="basalt-number basalt-exact" tabIndex={0}>
        {shown}
      </span>
    </Tooltip>
  );
}

/** Quantity shows a meter's quantity; per is the number of base units of its price. */
export function Quantity({ meter, n, per }: { meter: string; n: number | bigint; per?: number }) {
  const text = useText();
  return <Exact shown={formatQuantity(meter, Number(n), text, per)} exact={exactQuantity(meter, n, text, per)} />;
}

/** Money shows an amount in millionths of a currency. */
export function Money({ micros, currency }: { micros: number; currency: string }) {
  const { language } = useText();
  return <Exact shown={formatMicros(micros, currency, language)} exact={exactMicros(micros, currency, language)} />;
}
