// Requests a host name for a reseller's portal, and sets the certificate of one.
import { useState } from 'react';
import { useOrganizations } from '../api/customers';
import { useRequestPortalDomain, useSetCertificate, type PortalDomain } from '../api/portal-domains';
import { useText } from '../i18n';
import { asCommand, asCurl } from '../lib/shell';
import { FormDialog } from '../parts/form-dialog';
import { Same } from '../parts/same';
import { SelectField, TextField } from '../parts/text-field';
import { TextFileField } from '../parts/text-file';

// Bytes, as the API's description limits them.
const maxCertificate = 64 * 1024;
const maxKey = 16 * 1024;

export function RequestPortalDomain({ operator, onClose }: { operator: boolean; onClose: () => void }) {
  const { t } = useText();
  const [form, setForm] = useState({ name: '', organization: '' });
  const organizations = useOrganizations({ limit: 1000 }, operator);
  const request = useRequestPortalDomain(onClose);
  const body: PortalDomain = {
    kind: 'PortalDomain',
    meta: {
      name: form.name.trim().toLowerCase(),
      ...(form.organization && { organization: form.organization }),
    },
    spec: {},
  };
  return (
    <FormDialog
      title={t('dom.request')}
      help={t('dom.requestHelp')}
      action={t('dom.request')}
      busy={request.isPending}
      error={request.error}
      schema="PortalDomain"
      body={body}
      onSubmit={() => request.mutate(body)}
      onClose={onClose}
    >
      <TextField
        id="domain-name"
        label={t('dom.name')}
        help={t('dom.nameHelp')}
        path="meta.name"
        value={form.name}
        onChange={(name) => setForm((f) => ({ ...f, name }))}
        required
      />
      {operator && (
        <SelectField
          id="domain-organization"
          label={t('dom.organization')}
          path="meta.organization"
          value={form.organization}
          onChange={(organization) => setForm((f) => ({ ...f, organization }))}
          options={[
            ['', t('dom.organizationChoose')],
            ...(organizations.data?.items ?? []).map((o): [string, string] => [o.meta.id ?? '', o.meta.name]),
          ]}
          required
        />
      )}
      <Same
        cli={asCommand(['portal-domain', 'create', body.meta.name || 'NAME'], {
          organization: body.meta.organization,
        })}
        curl={asCurl('POST', '/v1/portal-domains', body)}
      />
    </FormDialog>
  );
}

export function SetCertificate({ domain, onClose }: { domain: PortalDomain; onClose: () => void }) {
  const { t } = useText();
  const [form, setForm] = useState({ certificate: '', key: '' });
  const set = useSetCertificate(onClose);
  const body: PortalDomain = {
    ...domain,
    spec: { ...domain.spec, certificate: form.certificate.trim(), key: form.key.trim() },
  };
  return (
    <FormDialog
      title={t('dom.certTitle', { name: domain.meta.name })}
      help={t('dom.certHelp')}
      action={t('cust.save')}
      wide
      busy={set.isPending}
      error={set.error}
      schema="PortalDomain"
      body={body}
      onSubmit={() => set.mutate(body)}
      onClose={onClose}
    >
      <TextFileField
        id="domain-certificate"
        label={t('dom.cert')}
        help={t('dom.certPem')}
        path="spec.certificate"
        rows={8}
        most={maxCertificate}
        accept=".pem,.crt,.cer"
        value={form.certificate}
        onChange={(certificate) => setForm((f) => ({ ...f, certificate }))}
        required
      />
      <TextFileField
        id="domain-key"
        label={t('dom.key')}
        help={t('dom.keyHelp')}
        path="spec.key"
        rows={6}
        most={maxKey}
        accept=".pem,.key"
        value={form.key}
        onChange={(key) => setForm((f) => ({ ...f, key }))}
        required
      />
    </FormDialog>
  );
}
