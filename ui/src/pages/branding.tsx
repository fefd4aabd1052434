import { Alert, Card, CardBody } from '@patternfly/react-core';
import { useState } from 'react';
import { useBranding, type Branding } from '../api/branding';
import { Loading } from '../app';
import { BrandingForm, LogoForm } from '../forms/branding';
import { useText } from '../i18n';
import { ErrorAlert } from '../parts/error';
import { PageBody } from '../parts/page';

/** What the form holds: another text makes another form, another logo does not. */
const textsOf = (b: Branding) => JSON.stringify({ ...b, logo: '', revision: 0 });

export function BrandingPage() {
  const { t } = useText();
  const query = useBranding();
  const [saved, setSaved] = useState(false);
  if (query.isPending) return <Loading />;
  return (
    <PageBody title={t('brand.title')}>
      <div className="basalt-stack basalt-form">
        <p className="basalt-note">{t('brand.help')}</p>
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
        {saved && <Alert component="p" variant="success" isInline isLiveRegion title={t('brand.saved')} />}
        {query.data && (
          <>
            <Card><CardBody><BrandingForm key={textsOf(query.data)} branding={query.data} onSaved={() => setSaved(true)} /></CardBody></Card>
            <Card><CardBody><LogoForm /></CardBody></Card>
          </>
        )}
      </div>
    </PageBody>
  );
}
