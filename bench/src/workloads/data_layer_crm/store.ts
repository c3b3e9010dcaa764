// Companies, contacts, leads, deals and activities (section 18.2). Every write checks what it refers to and the values of
// its enumerations, and appends to the log in the same transaction. Amounts are cents, times milliseconds since 1970.

export const companyStatuses = ["active", "inactive"] as const;
export const leadStatuses = ["new", "contacted", "qualified", "lost"] as const;
export const dealStages = ["open", "won", "lost"] as const;
export const activityKinds = ["call", "email", "meeting", "task"] as const;

export interface NewCompany {
  name: string;
  domain: string;
  industry: string;
  size: number;
  website: string;
  phone: string;
  status: string;
}

export interface NewContact {
  firstName: string;
  lastName: string;
  email: string;
  phone: string;
  title: string;
  companyId: number;
}

export interface NewLead {
  title: string;
  source: string;
  status: string;
  value: number;
  companyId: number;
  contactId: number;
}

export interface NewDeal {
  title: string;
  stage: string;
  amount: number;
  companyId: number;
  contactId: number;
  closeAt: number;
}

export interface NewActivity {
  kind: string;
  subject: string;
  body: string;
  dealId: number;
  contactId: number;
  done: boolean;
}

export type Contact = NewContact & { id: number };
export type Lead = NewLead & { id: number };

/** Rows of each table, and entries of the log. */
export interface Counts {
  companies: number;
  contacts: number;
  leads: number;
  deals: number;
  activities: number;
  events: number;
}

type Answer<T> = T | Promise<T>;

export interface CrmStore {
  /** Makes the tables if they are missing, and fills them anew, with ids from 1 on. */
  seed(data: SeedData): Answer<void>;
  createCompany(company: NewCompany): Answer<void>;
  createContact(contact: NewContact): Answer<void>;
  /** All or none, with an entry of the log for each. */
  createLeads(leads: NewLead[]): Answer<void>;
  createDeal(deal: NewDeal): Answer<void>;
  createActivity(activity: NewActivity): Answer<void>;
  /** The first ones in the order of their ids. */
  findLeads(status: string, limit: number): Answer<Lead[]>;
  findContacts(companyId: number, limit: number): Answer<Contact[]>;
  getContact(id: number): Answer<Contact | undefined>;
  counts(): Answer<Counts>;
}

export interface SeedSize {
  companies: number;
  contacts: number;
  leads: number;
}

/** Row `n` has the id `n + 1`. */
export interface SeedData {
  companies: NewCompany[];
  contacts: NewContact[];
  leads: NewLead[];
}

/** Contacts go to companies in turn, leads to contacts, and statuses to leads. The module seeds itself in the same way. */
export function seedData({ companies, contacts, leads }: SeedSize): SeedData {
  const companyOf = (contact: number) => 1 + (contact % companies);
  return {
    companies: Array.from({ length: companies }, (_, index) => {
      const domain = `company-${index}.example`;
      const name = `Company ${index}`;
      const website = `https://${domain}`;
      return {
        name,
        domain,
        industry: "software",
        size: index,
        website,
        phone: "+1 555 0100",
        status: "active",
      };
    }),
    contacts: Array.from({ length: contacts }, (_, index) => ({
      firstName: "First",
      lastName: `Last ${index}`,
      email: `contact-${index}@company.example`,
      phone: "+1 555 0101",
      title: "Engineer",
      companyId: companyOf(index),
    })),
    leads: Array.from({ length: leads }, (_, index) => ({
      title: `Lead ${index}`,
      source: "web",
      status: leadStatuses[index % leadStatuses.length]!,
      value: index * 100,
      companyId: companyOf(index % contacts),
      contactId: 1 + (index % contacts),
    })),
  };
}
