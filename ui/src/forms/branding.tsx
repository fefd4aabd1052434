// What the portal is called and looks like.
import { Alert, Button, Form as PFForm, TextInput } from '@patternfly/react-core';
import { useRef } from 'react';
import { logoOf, useBranding, useDeleteLogo, usePutLogo, type Branding } from '../api/branding';
import { atField, elsewhere } from '../api/fields';
import { branding as brandings } from '../api/resource';
import { useText, type Key } from '../i18n';
import { contrast, isColor, readable } from '../lib/accent';
import { asCurl } from '../lib/shell';
import { Conflict } from '../parts/conflict';
import { useEdit } from '../parts/edit';
import { ErrorAlert } from '../parts/error';
import { describedBy, Field } from '../parts/field';
import { Same } from '../parts/same';
import { TextField } from '../parts/text-field';

const shown = ['productName', 'accentColor', 'supportEmail', 'supportURL'];

export function LogoForm() {
  const { t } = useText();
  const { data } = useBranding();
  const put = usePutLogo();
  const remove = useDeleteLogo();
  const input = useRef<HTMLInputElement>(null);
  return (
    <div className="basalt-stack">
      <Field id="brand-logo" label={t('brand.logo')} help={t('brand.logoHelp')} error={atField(put.error, 'logo')}>
        <input
          ref={input}
          id="brand-logo"
          type="file"
          accept="image/png"
          hidden
          aria-describedby={describedBy('brand-logo')}
          onChange={(e) => {
            const f = e.currentTarget.files?.[0];
            if (f) put.mutate(f);
            e.currentTarget.value = '';
          }}
        />
      </Field>
      <ErrorAlert error={elsewhere(put.error, ['logo']) ?? remove.error} />
      <div className="basalt-actions">
        {data?.logo ? (
          <img className="basalt-logo" src={logoOf(data)} alt={t('brand.logoNow')} />
        ) : (
          <span className="basalt-note">{t('brand.logoNone')}</span>
        )}
        <Button variant="secondary" isLoading={put.isPending} onClick={() => input.current?.click()}>
          {t('brand.logoChoose')}
        </Button>
        {data?.logo && (
          <Button variant="link" isDanger isLoading={remove.isPending} onClick={() => remove.mutate(undefined)}>
            {t('brand.logoRemove')}
          </Button>
        )}
      </div>
    </div>
  );
}

type Form = Record<'productName' | 'accentColor' | 'supportEmail' | 'supportURL', string>;

const labels: Record<keyof Form, Key> = {
  productName: 'brand.name',
  accentColor: 'brand.accent',
  supportEmail: 'brand.email',
  supportURL: 'brand.url',
};

const formOf = (b: Branding | undefined): Form => ({
  productName: b?.productName ?? '',
  accentColor: b?.accentColor ?? '',
  supportEmail: b?.supportEmail ?? '',
  supportURL: b?.supportURL ?? '',
});

const bodyOf = (b: Branding | undefined, f: Form): Branding => ({
  revision: b?.revision,
  productName: f.productName.trim(),
  accentColor: f.accentColor.trim().toLowerCase(),
  supportEmail: f.supportEmail.trim(),
  supportURL: f.supportURL.trim(),
});

export function BrandingForm({ branding }: { branding: Branding }) {
  const { t, language } = useText();
  const edit = useEdit<Branding, Form>({ of: brandings, object: branding, fields: formOf, body: bodyOf });
  const { form, body } = edit;
  const set = (name: keyof Form) => (v: string) => (edit.dismiss(), edit.set(name)(v));
  const color = form.accentColor.trim().toLowerCase();
  const bad = isColor(color) && !readable(color);
  const ratio = bad
    ? new Intl.NumberFormat(language, { maximumFractionDigits: 1, roundingMode: 'floor' }).format(
        contrast(color, '#ffffff'),
      )
    : '';
  const at = (path: string) => atField(edit.error, path);
  const wrong = bad ? t('brand.accentBad', { ratio }) : at('accentColor');
  return (
    <PFForm onSubmit={(e) => (e.preventDefault(), !bad && edit.submit())}>
      {edit.saved && <Alert component="p" variant="success" isInline isLiveRegion title={t('brand.saved')} />}
      <ErrorAlert error={elsewhere(edit.error, shown)} />
      <Conflict edit={edit} label={(f) => t(labels[f])} />
      <TextField
        id="brand-name"
        label={t('brand.name')}
        help={t('brand.nameHelp')}
        error={at('productName')}
        value={form.productName}
        onChange={set('productName')}
      />
      <Field id="brand-accent" label={t('brand.accent')} help={t('brand.accentHelp')} error={wrong}>
        <div className="basalt-color">
          <input
            type="color"
            aria-label={t('brand.accentPick')}
            value={isColor(color) ? color : '#0066cc'}
            onChange={(e) => set('accentColor')(e.currentTarget.value)}
          />
          <TextInput
            id="brand-accent"
            value={form.accentColor}
            placeholder={t('brand.accentNone')}
            onChange={(_, v) => set('accentColor')(v)}
            validated={wrong ? 'error' : 'default'}
            aria-describedby={describedBy('brand-accent')}
            autoComplete="off"
            spellCheck={false}
          />
        </div>
      </Field>
      <TextField
        id="brand-email"
        type="email"
        label={t('brand.email')}
        error={at('supportEmail')}
        value={form.supportEmail}
        onChange={set('supportEmail')}
      />
      <TextField
        id="brand-url"
        type="url"
        label={t('brand.url')}
        error={at('supportURL')}
        value={form.supportURL}
        onChange={set('supportURL')}
      />
      <div>
        <Button type="submit" isLoading={edit.busy} isDisabled={edit.busy || bad}>
          {t('cust.save')}
        </Button>
      </div>
      <Same curl={asCurl('PUT', edit.path, body)} />
    </PFForm>
  );
}
