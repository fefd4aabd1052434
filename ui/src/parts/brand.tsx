// The product's mark and name, as the operator wants them.
import { useEffect } from 'react';
import { logoOf, productOf, useBranding } from '../api/branding';
import { useText } from '../i18n';
import { dress } from '../lib/accent';

export function Brand() {
  const { data, isPending } = useBranding();
  return (
    <>
      <img src={isPending ? '/favicon.svg' : logoOf(data)} alt="" />
      <span>{isPending ? '' : productOf(data)}</span>
    </>
  );
}

/** Dress puts the operator's colour on the whole page. */
export function Dress() {
  const color = useBranding().data?.accentColor ?? '';
  useEffect(() => dress(color), [color]);
  return null;
}

/** Support says whom to ask for help, where the operator has said so. */
export function Support() {
  const { t } = useText();
  const { data } = useBranding();
  return (
    <>
      {data?.supportURL && (
        <a href={data.supportURL} rel="noreferrer noopener">
          {t('brand.support')}
        </a>
      )}
      {data?.supportURL && data.supportEmail && ' '}
      {data?.supportEmail && <a href={`mailto:${data.supportEmail}`}>{data.supportEmail}</a>}
    </>
  );
}
