// @vitest-environment jsdom
import { expect, test } from 'vitest';
import type { IdentityProvider } from '../api/identity-providers';
import { grantWord, ownerOf, providerForm, providerOf, serviceOf } from './identity-provider';

const saml: IdentityProvider = {
  kind: 'IdentityProvider',
  meta: { id: 'idp-1', name: 'okta', revision: 4 },
  spec: {
    issuer: 'https://idp.example',
    redirects: ['https://cloud.example/login/oidc'],
    organization: 'org-1',
    grants: [{ claim: 'groups', value: 'a:b', grant: { role: 'member', organization: 'org-1', project: 'prj-1' } }],
    saml: {
      signOnURL: 'https://idp.example/sso',
      certificates: ['one'],
      baseURL: 'https://cloud.example',
      nameIdFormat: 'persistent',
      emailAttribute: 'mail',
      emailDomains: ['example.com'],
    },
  },
};

test('a form that nobody has changed changes nothing', () => {
  const { spec, meta } = providerOf('saml', saml, providerForm(saml));
  expect(meta).toEqual(saml.meta);
  expect(JSON.parse(JSON.stringify(spec))).toEqual({ ...saml.spec, create: false });
});

test('certificates are added and removed; new metadata replaces them', () => {
  const form = providerForm(saml);
  const added = providerOf('saml', saml, { ...form, certificate: ' two\n' });
  expect(added.spec.saml?.certificates).toEqual(['one', 'two']);
  const replaced = providerOf('saml', saml, { ...form, metadata: '<x/>' });
  expect(replaced.spec.saml?.metadata).toBe('<x/>');
});

test('a secret is sent only if it was entered, and a role has the scope that it can have', () => {
  const form = {
    ...providerForm(undefined),
    name: ' id ',
    issuer: 'https://id.example',
    clientId: 'x',
    scopes: 'a, b',
  };
  expect(form.redirects).toBe(`${location.origin}/login/oidc`);
  const body = providerOf('oidc', undefined, {
    ...form,
    grants: [{ key: 1, claim: 'g', value: 'v', role: 'operator', organization: 'org-1', project: 'prj-1' }],
  });
  expect(body.meta).toEqual({ name: 'id' });
  expect('clientSecret' in body.spec).toBe(false);
  expect(body.spec.scopes).toEqual(['a', 'b']);
  expect(body.spec.grants).toEqual([{ claim: 'g', value: 'v', grant: { role: 'operator' } }]);
  expect(providerOf('oidc', undefined, { ...form, clientSecret: 's' }).spec.clientSecret).toBe('s');
});

test('a role in the words of the command', () => {
  expect(providerForm(saml).grants.map(grantWord)).toEqual(['groups=a:b:member@org-1/prj-1']);
});

test('what the provider must be told', () => {
  expect(serviceOf(saml)).toEqual({
    entityID: 'https://cloud.example/v1/login/saml/okta/metadata',
    acsURL: 'https://cloud.example/v1/login/saml/okta/acs',
    metadata: '/v1/login/saml/okta/metadata',
  });
});

test('a provider of an organization has its ID in the addresses, and no redirects', () => {
  const own = { ...saml, meta: { ...saml.meta, organization: 'org-1' }, spec: { ...saml.spec, redirects: undefined } };
  expect(ownerOf(own)).toBe('org-1');
  expect(ownerOf(saml)).toBe('');
  expect(serviceOf(own).acsURL).toBe('https://cloud.example/v1/login/saml/idp-1/acs');
  expect(serviceOf(saml).acsURL).toBe('https://cloud.example/v1/login/saml/okta/acs');
  expect(providerForm(undefined, 'org-1').redirects).toBe('');
  expect(providerForm(undefined).redirects).not.toBe('');
});
