// The portal's name and appearance.
import { Alert, Button, TextInput } from '@patternfly/react-core';
import { useRef } from 'react';
import { LogoChanged, logoOf, useBranding, useLogo, type Branding } from '../api/branding';
import { atField } from '../api/fields';
import { brandingOf } from '../api/resource';
import { useText, type Key } from '../i18n';
import { contrast, isColor, readable } from '../lib/accent';
import { Conflict } from '../parts/conflict';
import { useEdit } from '../parts/edit';
import { ErrorAlert } from '../parts/error';
import { describedBy, Field, said } from '../parts/field';
import { Form, useWrong } from '../parts/form';
import { Same } from '../parts/same';
import { TextField } from '../parts/text-field';

export function LogoForm({ reseller }: { reseller?: string }) {
  const { t } = useText();
  const { data } = useBranding(reseller);
  const change = useLogo(reseller);
  const input = useRef<HTMLInputElement>(null);
  const { error } = change;
  const changed = error instanceof LogoChanged;
  const atLogo = atField(error, 'logo');
  const busy = (file: boolean) => change.isPending && !!change.variables.file === file;
  return (
    <div className="basalt-stack">
      <Field id="brand-logo" label={t('brand.logo')} help={t('brand.logoHelp')} error={atLogo}>
        <input
          ref={input}
          id="brand-logo"
          type="file"
          accept="image/png"
          hidden
          aria-describedby={describedBy('brand-logo')}
          onChange={(e) => {
            const f = e.currentTarget.files?.[0];
            if (f && data) change.mutate({ was: data, file: f });
            e.currentTarget.value = '';
          }}
        />
      </Field>
      {changed ? (
        <Alert variant="warning" isInline isLiveRegion component="p" title={t('conflict.both')}>
          {t('brand.logoChanged')}
        </Alert>
      ) : (
        <ErrorAlert error={atLogo ? null : error} />
      )}
      <div className="basalt-actions">
        {data?.logo ? (
          <img className="basalt-logo" src={logoOf(data, reseller)} alt={t('brand.logoNow')} />
        ) : (
          <span className="basalt-note">{t('brand.logoNone')}</span>
        )}
        <Button
          variant="secondary"
          isLoading={busy(true)}
          isDisabled={!data || change.isPending}
          onClick={() => input.current?.click()}
        >
          {t('brand.logoChoose')}
        </Button>
        {data?.logo && (
          <Button
            variant="link"
            isDanger
            isLoading={busy(false)}
            isDisabled={change.isPending}
            onClick={() => change.mutate({ was: data })}
          >
            {t('brand.logoRemove')}
          </Button>
        )}
      </div>
    </div>
  );
}

type Fields = Record<'productName' | 'accentColor' | 'supportEmail' | 'supportURL', string>;

const labels: Record<keyof Fields, Key> = {
  productName: 'brand.name',
  accentColor: 'brand.accent',
  supportEmail: 'brand.email',
  supportURL: 'brand.url',
};

const formOf = (b: Branding | undefined): Fields => ({
  productName: b?.productName ?? '',
  accentColor: b?.accentColor ?? '',
  supportEmail: b?.supportEmail ?? '',
  supportURL: b?.supportURL ?? '',
});

const bodyOf = (b: Branding | undefined, f: Fields): Branding => ({
  revision: b?.revision,
  productName: f.productName.trim(),
  accentColor: f.accentColor.trim().toLowerCase(),
  supportEmail: f.supportEmail.trim(),
  supportURL: f.supportURL.trim(),
});

function Accent({ value, onChange }: { value: string; onChange: (v: string) => void }) {
  const { t } = useText();
  return (
    <TextInput
      id="brand-accent"
      value={value}
      placeholder={t('brand.accentNone')}
      onChange={(_, v) => onChange(v)}
      {...said('brand-accent', useWrong('brand-accent'))}
      autoComplete="off"
      spellCheck={false}
    />
  );
}

export function BrandingForm({ branding, reseller }: { branding: Branding; reseller?: string }) {
  const { t, language } = useText();
  const edit = useEdit<Branding, Fields>({ of: brandingOf(reseller), object: branding, fields: formOf, body: bodyOf });
  const { form } = edit;
  const { set } = edit;
  const color = form.accentColor.trim().toLowerCase();
  const bad = isColor(color) && !readable(color);
  const ratio = bad
    ? new Intl.NumberFormat(language, { maximumFractionDigits: 1, roundingMode: 'floor' }).format(
        contrast(color, '#ffffff'),
      )
    : '';
  return (
    <Form
      schema="Branding"
      body={edit.body}
      wrong={bad ? [{ path: 'accentColor', text: t('brand.accentBad', { ratio }) }] : []}
      busy={edit.busy}
      error={edit.error}
      onSubmit={edit.submit}
    >
      {edit.saved && <Alert component="p" variant="success" isInline isLiveRegion title={t('brand.saved')} />}
      <Conflict edit={edit} label={(f) => t(labels[f])} />
      <TextField
        id="brand-name"
        label={t('brand.name')}
        help={t(reseller ? 'brand.nameHelpReseller' : 'brand.nameHelp')}
        path="productName"
        value={form.productName}
        onChange={set('productName')}
      />
      <Field id="brand-accent" label={t('brand.accent')} help={t('brand.accentHelp')} path="accentColor">
        <div className="basalt-color">
          <input
            type="color"
            aria-label={t('brand.accentPick')}
            value={isColor(color) ? color : '#0066cc'}
            onChange={(e) => set('accentColor')(e.currentTarget.value)}
          />
          <Accent value={form.accentColor} onChange={set('accentColor')} />
        </div>
      </Field>
      <TextField
        id="brand-email"
        type="email"
        label={t('brand.email')}
        path="supportEmail"
        value={form.supportEmail}
        onChange={set('supportEmail')}
      />
      <TextField
        id="brand-url"
        type="url"
        label={t('brand.url')}
        path="supportURL"
        value={form.supportURL}
        onChange={set('supportURL')}
      />
      <div>
        <Button type="submit" isLoading={edit.busy} isDisabled={edit.busy}>
          {t('cust.save')}
        </Button>
      </div>
      <Same curl={edit.curl} />
    </Form>
  );
}
