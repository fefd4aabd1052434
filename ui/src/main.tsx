import '@patternfly/react-core/dist/styles/base.css';
import './portal.css';
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { newQueryClient } from './api/session';
import { App } from './app';
import { LanguageProvider } from './i18n';
import { followTheme } from './lib/theme';
import { keepReturn } from './lib/oidc';

followTheme();
keepReturn();
createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={newQueryClient()}>
      <LanguageProvider>
        <App />
      </LanguageProvider>
    </QueryClientProvider>
  </StrictMode>,
);
