// Redeems a voucher: a button that asks for a code, and the credit that it gave.
import { Alert, Button } from '@patternfly/react-core';
import { useState } from 'react';
import type { Schemas } from '../api/client';
import { useRedeemVoucher } from '../api/vouchers';
import { useText } from '../i18n';
import { formatMicros } from '../lib/format';
import { asCommand, asCurl } from '../lib/shell';
import { FormDialog } from './form-dialog';
import { Same } from './same';
import { TextField } from './text-field';

type Wallet = Schemas['Wallet'];

/** RedeemVoucher adds the credit of a code to the wallet's organization; it renders nothing if there are no
 * vouchers. */
export function RedeemVoucher({ wallet: w }: { wallet: Wallet }) {
  const { t, language } = useText();
  const [open, setOpen] = useState(false);
  const [given, setGiven] = useState<Schemas['Payment']>();
  if (!w.vouchers) return null;
  return (
    <>
      <Button variant="secondary" onClick={() => (setGiven(undefined), setOpen(true))}>
        {t('vch.redeem')}
      </Button>
      {open && <Dialog organization={w.organization} onDone={setGiven} onClose={() => setOpen(false)} />}
      {given && (
        <Alert
          component="p"
          variant="success"
          isInline
          isLiveRegion
          title={t('vch.added', { amount: formatMicros(given.spec.amountMicros, given.spec.currency, language) })}
        />
      )}
    </>
  );
}

function Dialog({
  organization,
  onDone,
  onClose,
}: {
  organization: string | undefined;
  onDone: (p: Schemas['Payment']) => void;
  onClose: () => void;
}) {
  const { t } = useText();
  const redeem = useRedeemVoucher(organization);
  const [code, setCode] = useState('');
  return (
    <FormDialog
      title={t('vch.redeem')}
      help={t('vch.redeemHelp')}
      action={t('vch.redeem')}
      busy={redeem.isPending}
      error={redeem.error}
      body={{ code: code.trim() }}
      onSubmit={() => redeem.mutate(code.trim(), { onSuccess: (p) => (onDone(p), onClose()) })}
      onClose={onClose}
    >
      <TextField
        id="voucher-code"
        label={t('vch.code')}
        help={t('vch.redeemCodeHelp')}
        path="code"
        value={code}
        onChange={setCode}
        required
      />
      <Same
        cli={asCommand(['voucher', 'redeem', 'CODE'], { organization })}
        curl={asCurl('POST', '/v1/voucher-redemptions', { organization, code: 'CODE' })}
      />
    </FormDialog>
  );
}
