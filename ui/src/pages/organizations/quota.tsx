// A customer's quota, with the current usage.
import { Button, Card, CardBody } from '@patternfly/react-core';
import { useQueryClient } from '@tanstack/react-query';
import type { Organization } from '../../api/customers';
import { useQuota } from '../../api/queries';
import { organizations } from '../../api/resource';
import { useText } from '../../i18n';
import { formatBytes } from '../../lib/format';
import {
  flags,
  isSize,
  limitsOf,
  quotaForm,
  quotaKey,
  quotas,
  wrong,
  type Quota,
  type QuotaForm,
} from '../../lib/quota';
import { lines, quote } from '../../lib/shell';
import { Conflict } from '../../parts/conflict';
import { useEdit } from '../../parts/edit';
import { Form } from '../../parts/form';
import { Same } from '../../parts/same';
import { TextField } from '../../parts/text-field';

export function QuotaEditor({ organization: o, owns }: { organization: Organization; owns: boolean }) {
  const { t, language } = useText();
  const client = useQueryClient();
  const uses = useQuota('', o.meta.id).data?.uses ?? {};
  const edit = useEdit<Organization, QuotaForm>({
    of: organizations,
    object: o,
    fields: (x) => quotaForm(x?.spec.quota),
    body: (x, form) => ({
      kind: o.kind,
      meta: (x ?? o).meta,
      spec: { ...x?.spec, quota: wrong(form).length === 0 ? limitsOf(form, x?.spec.quota) : {} },
    }),
    onSaved: () => void client.invalidateQueries({ queryKey: ['quota'] }),
  });
  const {
    form,
    body: { spec },
  } = edit;
  const label = (q: Quota) => (isSize(q) ? t('cust.quotaGib', { name: t(quotaKey(q)) }) : t(quotaKey(q)));
  const used = (q: Quota) =>
    t('cust.quotaUsed', {
      used: isSize(q) ? formatBytes(uses[q] ?? 0, language) : new Intl.NumberFormat(language).format(uses[q] ?? 0),
    });
  return (
    <Card>
      <CardBody>
        <Form
          className="basalt-form"
          schema="Organization"
          body={edit.body}
          wrong={wrong(form).map((q) => ({ path: `spec.quota.${q}`, text: t('cust.quotaWrong') }))}
          busy={edit.busy}
          error={edit.error}
          onSubmit={edit.submit}
        >
          <p>{t('cust.quotaHelp')}</p>
          <Conflict edit={edit} label={label} />
          <div role="status">{edit.saved && t('cust.quotaSaved')}</div>
          <div className="basalt-columns">
            {quotas.map((q) => (
              <TextField
                key={q}
                id={`quota-${q}`}
                label={label(q)}
                help={used(q)}
                value={form[q]}
                readOnly={!owns}
                path={`spec.quota.${q}`}
                onChange={(v) => edit.set(q)(v)}
              />
            ))}
          </div>
          {owns && (
            <>
              <div>
                <Button type="submit" isLoading={edit.busy} isDisabled={edit.busy || edit.gone}>
                  {t('cust.save')}
                </Button>
              </div>
              <Same
                cli={lines([`basalt organization set ${quote(o.meta.name)}`, ...flags(spec.quota ?? {})])}
                curl={edit.curl}
              />
            </>
          )}
        </Form>
      </CardBody>
    </Card>
  );
}
