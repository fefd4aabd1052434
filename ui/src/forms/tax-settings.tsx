// Which taxes a seller charges: its own country, the rates by country, and the reverse charge.
import { Alert, Button, FormSection } from '@patternfly/react-core';
import { taxSettingsOf as settingsOf } from '../api/resource';
import type { TaxSettings } from '../api/taxes';
import { useText, type Key } from '../i18n';
import { asCommand } from '../lib/shell';
import { newTaxRow, rateText, taxForm, taxSettingsOf, type TaxForm, type TaxRow } from '../lib/tax';
import { CheckField } from '../parts/check-field';
import { Conflict } from '../parts/conflict';
import { useEdit } from '../parts/edit';
import { Form } from '../parts/form';
import { Same } from '../parts/same';
import { TextField } from '../parts/text-field';

const labels: Record<keyof TaxForm, Key> = {
  country: 'tax.country',
  taxId: 'tax.number',
  reverseCharge: 'tax.reverse',
  verifyNumbers: 'tax.verify',
  rates: 'tax.rates',
  otherName: 'tax.otherName',
  otherPercent: 'tax.otherPercent',
};

function Rates({ rows, set }: { rows: TaxRow[]; set: (rows: TaxRow[]) => void }) {
  const { t } = useText();
  return rows.map((r, i) => {
    const field = (name: Exclude<keyof TaxRow, 'key'>, label: Key, path: string = name) => (
      <TextField
        id={`tax-${name}-${r.key}`}
        label={t(label)}
        path={`rates[${i}].${path}`}
        type={name === 'from' ? 'datetime-local' : 'text'}
        value={r[name]}
        onChange={(v) => set(rows.map((x, j) => (j === i ? { ...x, [name]: v } : x)))}
      />
    );
    return (
      <div key={r.key} className="basalt-row basalt-row-wide">
        {field('country', 'tax.rateCountry')}
        {field('region', 'tax.region')}
        {field('name', 'tax.name')}
        {field('percent', 'price.percent', 'basisPoints')}
        {field('from', 'price.begins')}
        <div className="basalt-row-actions">
          <Button variant="link" isDanger onClick={() => set(rows.filter((_, j) => j !== i))}>
            {t('price.remove')}
          </Button>
        </div>
      </div>
    );
  });
}

interface Props {
  settings: TaxSettings;
  /** The reseller whose settings they are. */
  organization?: string;
}

export function TaxSettingsForm({ settings, organization }: Props) {
  const { t } = useText();
  const edit = useEdit<TaxSettings, TaxForm>({
    of: settingsOf(organization),
    object: settings,
    fields: taxForm,
    body: (s, f) => taxSettingsOf(s, f).settings,
  });
  const { form } = edit;
  const { wrong } = taxSettingsOf(settings, form);
  const text = (name: 'country' | 'taxId' | 'otherName' | 'otherPercent', path: string = name) => ({
    id: `tax-${name}`,
    label: t(labels[name]),
    path,
    value: form[name],
    onChange: edit.set(name),
  });
  return (
    <Form
      schema="TaxSettings"
      long
      body={edit.body}
      wrong={wrong.map((path) => ({ path, text: t('price.problem.percent') }))}
      busy={edit.busy}
      error={edit.error}
      onSubmit={edit.submit}
    >
      {edit.saved && <Alert component="p" variant="success" isInline isLiveRegion title={t('tax.saved')} />}
      {settings.undecided && <Alert component="p" variant="warning" isInline title={t('tax.undecided')} />}
      <Conflict
        edit={edit}
        label={(f) => t(labels[f])}
        text={(f, v) => (f === 'rates' && !Array.isArray(v) ? rateText(v as TaxRow) : undefined)}
      />
      <FormSection title={t('tax.seller')} titleElement="h2">
        <TextField {...text('country')} help={t('tax.countryHelp')} />
        <TextField {...text('taxId')} help={t('tax.numberHelp')} />
        <CheckField
          id="tax-reverse"
          label={t('tax.reverse')}
          help={t('tax.reverseHelp')}
          path="reverseCharge"
          checked={form.reverseCharge}
          onChange={edit.set('reverseCharge')}
        />
        <CheckField
          id="tax-verify"
          label={t('tax.verify')}
          help={t('tax.verifyHelp')}
          path="verifyNumbers"
          checked={form.verifyNumbers}
          onChange={edit.set('verifyNumbers')}
        />
      </FormSection>
      <FormSection title={t('tax.rates')} titleElement="h2">
        <p>{t('tax.ratesHelp')}</p>
        <Rates rows={form.rates} set={edit.set('rates')} />
        <div>
          <Button variant="secondary" onClick={() => edit.set('rates')([...form.rates, newTaxRow()])}>
            {t('tax.add')}
          </Button>
        </div>
      </FormSection>
      <FormSection title={t('tax.other')} titleElement="h2">
        <p>{t('tax.otherHelp')}</p>
        <TextField {...text('otherName', 'other.name')} />
        <TextField {...text('otherPercent', 'other.basisPoints')} />
      </FormSection>
      <div>
        <Button type="submit" isLoading={edit.busy} isDisabled={edit.busy}>
          {t('cust.save')}
        </Button>
      </div>
      <Same
        cli={asCommand(['tax-settings', 'set', ...form.rates.flatMap((r) => ['--rate', rateText(r)])], {
          organization,
          country: form.country.trim(),
          'tax-id': form.taxId.trim(),
          other: [form.otherName, form.otherPercent].filter(Boolean).join(' '),
          [`reverse-charge=${form.reverseCharge}`]: true,
          [`verify-numbers=${form.verifyNumbers}`]: true,
        })}
        curl={edit.curl}
      />
    </Form>
  );
}
