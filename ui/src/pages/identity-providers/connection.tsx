// What an identity provider must be told about this service, to copy or download.
import {
  Button,
  ClipboardCopy,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  Title,
} from '@patternfly/react-core';
import { Link } from 'wouter';
import type { IdentityProvider } from '../../api/identity-providers';
import { useCertificateText } from '../../forms/identity-provider';
import { useText } from '../../i18n';
import { organizationAddress, ownerOf, serviceOf } from '../../lib/identity-provider';
import { redirectAddress } from '../../lib/oidc';

interface Row {
  term: string;
  text: string;
  /** It is shown, but nobody has to copy it. */
  plain?: boolean;
}

function Rows({ rows }: { rows: Row[] }) {
  const { t } = useText();
  return (
    <DescriptionList>
      {rows.map(({ term, text, plain }) => (
        <DescriptionListGroup key={`${term} ${text}`}>
          <DescriptionListTerm>{term}</DescriptionListTerm>
          <DescriptionListDescription>
            {plain ? (
              text
            ) : (
              <ClipboardCopy isReadOnly hoverTip={t('common.copy')} clickTip={t('common.copied')} textAriaLabel={term}>
                {text}
              </ClipboardCopy>
            )}
          </DescriptionListDescription>
        </DescriptionListGroup>
      ))}
    </DescriptionList>
  );
}

function Oidc({ provider: p }: { provider: IdentityProvider }) {
  const { t } = useText();
  return (
    <>
      <p>{t('idp.connectOidc')}</p>
      <Rows
        rows={[
          ...(ownerOf(p) ? [redirectAddress()] : (p.spec.redirects ?? [])).map((text) => ({
            term: t('idp.redirectURI'),
            text,
          })),
          { term: t('idp.grantType'), text: t('idp.grantTypeIs'), plain: true },
          { term: t('idp.scopesAsked'), text: ['openid', 'email', ...(p.spec.scopes ?? [])].join(' '), plain: true },
        ]}
      />
    </>
  );
}

function Saml({ provider: p }: { provider: IdentityProvider }) {
  const { t } = useText();
  const said = useCertificateText();
  const service = serviceOf(p);
  const { saml } = p.spec;
  const email = saml?.emailAttribute ?? 'NameID';
  return (
    <>
      <p>{t('idp.connectSaml')}</p>
      <div>
        <Button component="a" variant="secondary" href={service.metadata} download={`${p.meta.name}-sp.xml`}>
          {t('idp.download')}
        </Button>
      </div>
      <Rows
        rows={[
          { term: t('idp.entityID'), text: service.entityID },
          { term: t('idp.acsURL'), text: service.acsURL },
          { term: t('idp.nameId'), text: t(`idp.nameId.${saml?.nameIdFormat ?? 'persistent'}`), plain: true },
          { term: t('idp.signature'), text: t('idp.signatureIs'), plain: true },
          { term: t('idp.emailAttribute'), text: email, plain: true },
          { term: t('idp.encryption'), text: t('idp.encryptionIs'), plain: true },
        ]}
      />
      <Title headingLevel="h2" size="lg">
        {t('idp.ofProvider')}
      </Title>
      <Rows
        rows={[
          { term: t('idp.issuerSaml'), text: p.spec.issuer ?? '', plain: true },
          { term: t('idp.signOn'), text: saml?.signOnURL ?? '', plain: true },
          ...(saml?.certificates ?? []).map((pem, i) => ({
            term: t('idp.certificateNumber', { n: i + 1 }),
            text: said({ pem }),
            plain: true,
          })),
        ]}
      />
    </>
  );
}

export function Connection({ provider: p }: { provider: IdentityProvider }) {
  const { t } = useText();
  return (
    <div className="basalt-stack">
      {ownerOf(p) && (
        <>
          <p>{t('idp.signInAt')}</p>
          <Rows rows={[{ term: t('idp.signInPage'), text: organizationAddress(ownerOf(p)) }]} />
        </>
      )}
      {p.spec.saml ? <Saml provider={p} /> : <Oidc provider={p} />}
      <Title headingLevel="h2" size="lg">
        {t('idp.scim')}
      </Title>
      <p>
        {t('idp.scimHelp')} <Link href="/groups">{t('grp.title')}</Link>
      </p>
    </div>
  );
}
