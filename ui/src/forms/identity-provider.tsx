// Creates or changes an identity provider: the connection to it, which users it creates, and the roles and groups that
// its claims give.
import { Alert, Button, FormSection } from '@patternfly/react-core';
import { useOrganizations, useProjectsOf } from '../api/customers';
import type { IdentityProvider } from '../api/identity-providers';
import { identityProviders } from '../api/resource';
import type { Role } from '../api/session';
import { useText, type Key } from '../i18n';
import { expiry } from '../lib/certificate';
import { formatDay } from '../lib/format';
import {
  grantWord,
  hasOrganization,
  hasProject,
  newGrant,
  providerForm,
  providerOf,
  type CertificateRow,
  type GrantRow,
  type Protocol,
  type ProviderForm,
} from '../lib/identity-provider';
import { asCommand } from '../lib/shell';
import { CheckField } from '../parts/check-field';
import { Conflict } from '../parts/conflict';
import { useEdit, type Edit } from '../parts/edit';
import { Form } from '../parts/form';
import { Same } from '../parts/same';
import { SelectField, TextField } from '../parts/text-field';
import { TextFileField } from '../parts/text-file';

const roles = ['operator', 'reseller', 'admin', 'member', 'viewer', 'billing'] as const satisfies Role[];
/** The roles that a provider of an organization can give. */
const ownRoles = ['admin', 'member', 'viewer', 'billing'] as const satisfies Role[];
const maxMetadata = 256 * 1024;
const maxCertificate = 8 * 1024;

const labels: Record<keyof ProviderForm, Key> = {
  name: 'common.name',
  issuer: 'idp.issuer',
  clientId: 'idp.clientId',
  clientSecret: 'idp.clientSecret',
  scopes: 'idp.scopes',
  redirects: 'idp.redirects',
  organization: 'idp.organization',
  create: 'idp.create',
  grants: 'idp.grants',
  groupsClaim: 'idp.groupsClaim',
  metadata: 'idp.metadata',
  certificates: 'idp.certificates',
  certificate: 'idp.certificateAdd',
  emailDomains: 'idp.domains',
  nameIdFormat: 'idp.nameId',
  emailAttribute: 'idp.emailAttribute',
  nameAttribute: 'idp.nameAttribute',
  baseURL: 'idp.baseURL',
};

type TextName = {
  [K in keyof ProviderForm]: ProviderForm[K] extends string ? (string extends ProviderForm[K] ? K : never) : never;
}[keyof ProviderForm];

interface PartProps {
  edit: Edit<ProviderForm>;
  text: (
    name: TextName,
    path: string,
  ) => { id: string; label: string; path: string } & {
    value: string;
    onChange: (v: string) => void;
  };
}

function OidcFields({ text, known }: Pick<PartProps, 'text'> & { known: boolean }) {
  const { t } = useText();
  return (
    <>
      <TextField {...text('issuer', 'spec.issuer')} help={t('idp.issuerHelp')} type="url" readOnly={known} required />
      <TextField {...text('clientId', 'spec.clientId')} help={t('idp.clientIdHelp')} required />
      <TextField
        {...text('clientSecret', 'spec.clientSecret')}
        help={t(known ? 'idp.secretKept' : 'idp.secretHelp')}
        type="password"
        autoComplete="new-password"
      />
      <TextField {...text('scopes', 'spec.scopes')} help={t('idp.scopesHelp')} />
    </>
  );
}

/** certificateText says until when a certificate is valid. */
export function useCertificateText() {
  const { t, language } = useText();
  return ({ pem }: Pick<CertificateRow, 'pem'>) => {
    const until = expiry(pem);
    if (!until) return t('idp.certificateUnknown');
    const day = formatDay(until.toISOString(), language);
    return t(until <= new Date() ? 'idp.certificateExpired' : 'idp.certificateUntil', { day });
  };
}

function Certificates({ edit, text }: PartProps) {
  const { t } = useText();
  const said = useCertificateText();
  const rows = edit.form.certificates;
  return (
    <FormSection title={t('idp.certificates')} titleElement="h2">
      <p>{t('idp.rotate')}</p>
      <ul className="basalt-plain">
        {rows.map((c, i) => (
          <li key={c.key}>
            {t('idp.certificateNumber', { n: i + 1 })}: {said(c)}{' '}
            {rows.length > 1 && (
              <Button
                variant="link"
                isInline
                isDanger
                aria-label={t('idp.certificateRemove', { n: i + 1 })}
                onClick={() => edit.set('certificates')(rows.filter((x) => x !== c))}
              >
                {t('price.remove')}
              </Button>
            )}
          </li>
        ))}
      </ul>
      <TextFileField
        {...text('certificate', `spec.saml.certificates[${rows.length}]`)}
        help={t('idp.certificateHelp')}
        rows={4}
        most={maxCertificate}
        accept=".pem,.crt,.cer"
      />
    </FormSection>
  );
}

function SamlFields({ edit, text, known }: PartProps & { known: boolean }) {
  const { t } = useText();
  return (
    <>
      <TextFileField
        {...text('metadata', 'spec.saml.metadata')}
        help={t(known ? 'idp.metadataReplace' : 'idp.metadataHelp')}
        rows={6}
        most={maxMetadata}
        accept=".xml,text/xml,application/xml,application/samlmetadata+xml"
        required={!known}
      />
      <TextField {...text('emailDomains', 'spec.saml.emailDomains')} help={t('idp.domainsHelp')} rows={2} required />
      <SelectField
        id="idp-nameIdFormat"
        label={t('idp.nameId')}
        help={t('idp.nameIdHelp')}
        path="spec.saml.nameIdFormat"
        value={edit.form.nameIdFormat}
        onChange={(v) => edit.set('nameIdFormat')(v as ProviderForm['nameIdFormat'])}
        options={[
          ['persistent', t('idp.nameId.persistent')],
          ['emailAddress', t('idp.nameId.emailAddress')],
        ]}
      />
      <TextField {...text('emailAttribute', 'spec.saml.emailAttribute')} help={t('idp.emailAttributeHelp')} />
      <TextField {...text('nameAttribute', 'spec.saml.nameAttribute')} help={t('idp.nameAttributeHelp')} />
      <TextField {...text('baseURL', 'spec.saml.baseURL')} help={t('idp.baseURLHelp')} type="url" />
    </>
  );
}

function ProjectOf({ id, row, path, set }: { id: string; row: GrantRow; path: string; set: (v: string) => void }) {
  const { t } = useText();
  const projects = useProjectsOf({ organization: row.organization, limit: 1000 });
  const options = (projects.data?.items ?? []).map((p): [string, string] => [p.meta.id ?? '', p.meta.name]);
  return (
    <SelectField
      id={id}
      label={t('common.project')}
      path={path}
      value={row.project}
      onChange={set}
      options={[['', t('idp.choose')], ...options]}
    />
  );
}

interface GrantsProps extends Pick<PartProps, 'edit'> {
  organizations: [string, string][];
  /** The organization of the provider: its roles are within it. */
  owner: string;
}

function Grants({ edit, organizations, owner }: GrantsProps) {
  const { t } = useText();
  const rows = edit.form.grants;
  const change = (r: GrantRow, to: Partial<GrantRow>) =>
    edit.set('grants')(rows.map((x) => (x === r ? { ...x, ...to } : x)));
  return (
    <FormSection title={t('idp.grants')} titleElement="h2">
      <p>{t('idp.grantsHelp')}</p>
      {rows.map((r, i) => {
        const at = `spec.grants[${i}]`;
        const of = (name: string) => `idp-grant-${name}-${r.key}`;
        return (
          <div key={r.key} className="basalt-row">
            <TextField
              id={of('claim')}
              label={t('idp.claim')}
              path={`${at}.claim`}
              value={r.claim}
              onChange={(claim) => change(r, { claim })}
            />
            <TextField
              id={of('value')}
              label={t('idp.value')}
              path={`${at}.value`}
              value={r.value}
              onChange={(value) => change(r, { value })}
            />
            <SelectField
              id={of('role')}
              label={t('common.role')}
              path={`${at}.grant.role`}
              value={r.role}
              onChange={(role) => change(r, { role: role as Role })}
              options={(owner ? ownRoles : roles).map((role) => [role, t(`role.${role}`)])}
            />
            {hasOrganization(r.role) && !owner && (
              <SelectField
                id={of('organization')}
                label={t('common.organization')}
                path={`${at}.grant.organization`}
                value={r.organization}
                onChange={(organization) => change(r, { organization, project: '' })}
                options={[['', t('idp.choose')], ...organizations]}
              />
            )}
            {hasProject(r.role) && r.organization && (
              <ProjectOf
                id={of('project')}
                row={r}
                path={`${at}.grant.project`}
                set={(project) => change(r, { project })}
              />
            )}
            <div className="basalt-row-actions">
              <Button variant="link" isDanger onClick={() => edit.set('grants')(rows.filter((x) => x !== r))}>
                {t('price.remove')}
              </Button>
            </div>
          </div>
        );
      })}
      <div>
        <Button
          variant="secondary"
          onClick={() =>
            edit.set('grants')([...rows, { ...newGrant(), organization: owner || edit.form.organization }])
          }
        >
          {t('idp.grantAdd')}
        </Button>
      </div>
    </FormSection>
  );
}

/** command is the form's equivalent, but for the files. */
function command(protocol: Protocol, known: boolean, f: ProviderForm, p: IdentityProvider): string {
  const { spec } = p;
  const comma = (list: string[] | undefined) => (list ?? []).join(',');
  const oidc = {
    issuer: known ? undefined : spec.issuer,
    'client-id': spec.clientId,
    'client-secret-file': f.clientSecret && 'secret.txt',
    scopes: comma(spec.scopes),
  };
  const saml = {
    'saml-metadata': f.metadata && 'idp.xml',
    'email-domain': comma(spec.saml?.emailDomains),
    'name-id-format': spec.saml?.nameIdFormat,
    'email-attribute': spec.saml?.emailAttribute,
    'name-attribute': spec.saml?.nameAttribute,
    'base-url': spec.saml?.baseURL,
  };
  const name = p.meta.name || 'NAME';
  const grants = f.grants.flatMap((g) => ['--grant', grantWord(g)]);
  return asCommand(['identity-provider', known ? 'set' : 'create', name, ...grants], {
    ...(protocol === 'oidc' ? oidc : saml),
    redirect: comma(spec.redirects),
    'users-organization': spec.organization,
    'groups-claim': spec.groupsClaim,
    [`create-users=${f.create}`]: true,
  });
}

interface Props {
  protocol: Protocol;
  /** The provider to change; none creates one. */
  provider?: IdentityProvider;
  /** The organization of the provider; empty: it is the operators'. */
  owner: string;
  onSaved?: (p: IdentityProvider) => void;
}

export function IdentityProviderForm({ protocol, provider, owner, onSaved }: Props) {
  const { t } = useText();
  const edit = useEdit<IdentityProvider, ProviderForm>({
    of: identityProviders,
    object: provider,
    fields: (p) => providerForm(p, owner),
    body: (p, f) => providerOf(protocol, p, f),
    onSaved,
    secrets: { 'spec.clientSecret': 'SECRET' },
  });
  const known = provider !== undefined;
  const organizations = (useOrganizations({ limit: 1000 }).data?.items ?? []).map((o): [string, string] => [
    o.meta.id ?? '',
    o.meta.name,
  ]);
  const certificate = useCertificateText();
  const text: PartProps['text'] = (name, path) => ({
    id: `idp-${name}`,
    label: t(labels[name]),
    path,
    value: edit.form[name],
    onChange: edit.set(name),
  });
  const rowText = (v: NonNullable<unknown>) =>
    typeof v !== 'object' ? undefined : 'pem' in v ? certificate(v as CertificateRow) : grantWord(v as GrantRow);
  return (
    <Form schema="IdentityProvider" long body={edit.body} busy={edit.busy} error={edit.error} onSubmit={edit.submit}>
      {edit.saved && known && <Alert component="p" variant="success" isInline isLiveRegion title={t('idp.saved')} />}
      <Conflict
        edit={edit}
        label={(f) => t(labels[f])}
        text={(f, v) => ((f === 'grants' || f === 'certificates') && !Array.isArray(v) ? rowText(v) : undefined)}
      />
      <TextField
        {...text('name', 'meta.name')}
        help={t(protocol === 'saml' && !owner ? 'idp.nameHelpSaml' : 'idp.nameHelp')}
        required
      />
      {protocol === 'oidc' ? (
        <OidcFields text={text} known={known} />
      ) : (
        <SamlFields edit={edit} text={text} known={known} />
      )}
      {!owner && <TextField {...text('redirects', 'spec.redirects')} help={t('idp.redirectsHelp')} rows={2} />}
      {protocol === 'saml' && known && !edit.form.metadata && <Certificates edit={edit} text={text} />}
      <FormSection title={t('idp.users')} titleElement="h2">
        {!owner && (
          <SelectField
            id="idp-organization"
            label={t('idp.organization')}
            help={t('idp.organizationHelp')}
            path="spec.organization"
            value={edit.form.organization}
            onChange={edit.set('organization')}
            options={[['', t('idp.operators')], ...organizations]}
          />
        )}
        <CheckField
          id="idp-create"
          label={t('idp.create')}
          help={t('idp.createHelp')}
          path="spec.create"
          checked={edit.form.create}
          onChange={edit.set('create')}
        />
        <TextField {...text('groupsClaim', 'spec.groupsClaim')} help={t('idp.groupsClaimHelp')} />
      </FormSection>
      <Grants edit={edit} organizations={organizations} owner={owner} />
      <div>
        <Button type="submit" isLoading={edit.busy} isDisabled={edit.busy}>
          {t(known ? 'cust.save' : 'common.create')}
        </Button>
      </div>
      <Same cli={command(protocol, known, edit.form, edit.body)} curl={edit.curl} />
    </Form>
  );
}
