import { Alert, Button, PageSection } from '@patternfly/react-core';
import { Component, type ReactNode } from 'react';
import { useText } from '../i18n';

function Broken() {
  const { t } = useText();
  return (
    <PageSection>
      <Alert
        component="h1"
        variant="danger"
        isInline
        title={t('error.broken')}
        actionLinks={
          <Button variant="link" isInline onClick={() => location.reload()}>
            {t('error.reload')}
          </Button>
        }
      >
        {t('error.brokenHint')}
      </Alert>
    </PageSection>
  );
}

/** Boundary limits a crash to the page that crashed. */
export class Boundary extends Component<{ children: ReactNode }, { broken: boolean }> {
  override state = { broken: false };
  static getDerivedStateFromError = () => ({ broken: true });
  override render() {
    return this.state.broken ? <Broken /> : this.props.children;
  }
}
