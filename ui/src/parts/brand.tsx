// The product's logo and name from the branding.
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

/** Dress applies the operator's colour to the whole page. */
export function Dress() {
  const color = useBranding().data?.accentColor ?? '';
  useEffect(() => dress(color), [color]);
  return null;
}

/** Support shows the support contact, if the operator has set one. */
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
