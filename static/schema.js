/* Reads what a card shows out of a schema.org object, which may be a list, a graph, nested, or broken. */

const MAX_DEPTH = 6;
const PAGE_PARTS = new Set(["WebPage", "WebSite", "BreadcrumbList", "ImageObject", "Organization", "Person", "ListItem", "SearchAction"]);
const PLACES = /^(Place|City|Country|State|AdministrativeArea|TouristAttraction|TouristDestination|LocalBusiness|Restaurant|CafeOrCoffeeShop|Hotel|LodgingBusiness|Store|Museum|Park|Landmark.*|CivicStructure|FoodEstablishment|BarOrPub|Beach|Accommodation|House|Apartment|Residence|SingleFamilyResidence)$/;

/** {type, image, facts: [text]} of `schema`; `image` is an address as written, or null. */
export function readItem(schema, name) {
  const node = mainNode(unpacked(schema), name);
  const type = typeOf(node);
  return { type, image: imageOf(node.image ?? node.thumbnailUrl ?? node.thumbnail ?? node.photo), facts: factsOf(type, node) };
}

function unpacked(schema) {
  if (typeof schema !== "string") return schema;
  try {
    return JSON.parse(schema);
  } catch {
    return {};
  }
}

function mainNode(schema, name) {
  const nodes = flattened(schema, 0);
  const things = nodes.filter((node) => !PAGE_PARTS.has(typeOf(node)));
  return things.find((node) => text(node.name) === name || text(node.headline) === name) ?? things[0] ?? nodes[0] ?? {};
}

function flattened(value, depth) {
  if (depth > MAX_DEPTH || value === null || typeof value !== "object") return [];
  if (Array.isArray(value)) return value.flatMap((one) => flattened(one, depth + 1));
  if (Array.isArray(value["@graph"])) return flattened(value["@graph"], depth + 1);
  if (value.mainEntity && PAGE_PARTS.has(typeOf(value))) return [...flattened(value.mainEntity, depth + 1), value];
  return [value];
}

function typeOf(node) {
  const names = list(node["@type"] ?? node.type)
    .filter((one) => typeof one === "string")
    .map((one) => one.replace(/^.*[/#:]/, ""))
    .filter((one) => /^\w{1,60}$/.test(one));
  const known = names.filter((one) => FACTS[one] || PLACES.test(one) || one.endsWith("Event"));
  return known.find((one) => FACTS[one] !== FACTS.Article) ?? known[0] ?? names[0] ?? "Thing"; // a recipe is often an article too
}

/** By type; without a prototype, so that a type called `constructor` is none of them. */
const FACTS = {
  __proto__: null,
  Recipe: (node) => [
    duration(node.totalTime) ?? duration(node.cookTime) ?? duration(node.prepTime), servings(node.recipeYield ?? node.yield), rating(node),
  ],
  Product: (node) => [price(node.offers ?? node), text(node.brand), availability(node.offers), rating(node)],
  Offer: (node) => [price(node), text(node.seller), availability(node)],
  Movie: (node) => [year(node.datePublished ?? node.dateCreated), names(node.director), names(node.genre), duration(node.duration), rating(node)],
  TVSeries: (node) => [year(node.startDate ?? node.datePublished), names(node.creator ?? node.director), names(node.genre), rating(node)],
  Book: (node) => [names(node.author), year(node.datePublished), rating(node)],
  PodcastEpisode: (node) => [text(node.partOfSeries), moment(node.datePublished), duration(node.duration ?? node.timeRequired)],
  Article: (node) => [names(node.author), moment(node.datePublished)],
  Event: (node) => [moment(node.startDate), placeName(node.location), price(node.offers)],
};
for (const like of ["IndividualProduct", "ProductModel", "ProductGroup", "Vehicle", "Car"]) FACTS[like] = FACTS.Product;
for (const like of ["AggregateOffer", "Demand"]) FACTS[like] = FACTS.Offer;
for (const like of ["NewsArticle", "BlogPosting", "TechArticle", "ScholarlyArticle", "Report"]) FACTS[like] = FACTS.Article;
for (const like of ["TVEpisode", "VideoObject"]) FACTS[like] = FACTS.Movie;

function factsOf(type, node) {
  const read = FACTS[type] ?? (type.endsWith("Event") ? FACTS.Event : PLACES.test(type) ? placeFacts : (other) => [rating(other)]);
  return read(node).filter((fact) => typeof fact === "string" && fact !== "").map((fact) => shortened(fact, 120));
}

function placeFacts(node) {
  return [placeName(node.containedInPlace ?? node.containedIn), address(node.address, text(node.name)), text(node.priceRange), rating(node)];
}

/** The first text in a value of any shape, or null. */
export function text(value, depth = 0) {
  if (depth > MAX_DEPTH || value === null || value === undefined) return null;
  if (typeof value === "string") return value.trim() || null;
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return value.reduce((found, one) => found ?? text(one, depth + 1), null);
  if (typeof value !== "object") return null;
  return text(value.name ?? value["@value"] ?? value.text ?? value.value ?? value.headline ?? null, depth + 1);
}

function imageOf(value, depth = 0) {
  if (depth > MAX_DEPTH || !value) return null;
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.reduce((found, one) => found ?? imageOf(one, depth + 1), null);
  return typeof value === "object" ? imageOf(value.url ?? value.contentUrl ?? value.thumbnailUrl ?? value["@id"], depth + 1) : null;
}

function list(value) {
  return Array.isArray(value) ? value : value === null || value === undefined ? [] : [value];
}

function shortened(value, most) {
  const graphemes = Array.from(new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(value.slice(0, most * 8)));
  return graphemes.length <= most ? value : `${graphemes.slice(0, most - 1).map((one) => one.segment).join("")}…`;
}

function number(value) {
  const written = text(value);
  if (written === null) return null;
  const plain = /^\d{1,3}(,\d{3})+(\.\d+)?$/.test(written) ? written.replaceAll(",", "") : written.replace(/^(\d+),(\d{1,2})$/, "$1.$2");
  return plain !== "" && Number.isFinite(Number(plain)) ? Number(plain) : null;
}

function duration(value) {
  const written = text(value);
  if (written === null) return null;
  const parts = /^P(?:(\d+)D)?(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:[\d.]+S)?)?$/i.exec(written);
  if (!parts) return /^\d+$/.test(written) ? `${written} min` : /\d/.test(written) && written.length <= 40 ? written : null;
  const minutes = Math.round(Number(parts[1] ?? 0) * 1440 + Number(parts[2] ?? 0) * 60 + Number(parts[3] ?? 0));
  if (minutes === 0) return null;
  const hours = Math.floor(minutes / 60);
  return [hours && `${hours} h`, minutes % 60 && `${minutes % 60} min`].filter(Boolean).join(" ");
}

function servings(value) {
  const all = list(value).map((one) => text(one)).filter(Boolean);
  const said = all.find((one) => /\D/.test(one)) ?? all[0]; // ["4", "4 servings"] is common
  if (!said) return null;
  return /^\d+$/.test(said) ? `Serves ${said}` : said;
}

function rating(node) {
  const found = list(node.aggregateRating)[0];
  const value = number(found?.ratingValue);
  if (value === null) return null;
  const best = number(found.bestRating) ?? 5;
  const count = number(found.reviewCount) ?? number(found.ratingCount);
  const told = `${new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 }).format(value)} out of ${best}`;
  if (!count) return told;
  return `${told}, ${new Intl.NumberFormat().format(count)} ${count === 1 ? "review" : "reviews"}`;
}

function price(value) {
  const offers = list(value).filter((one) => one && typeof one === "object");
  for (const offer of offers) {
    const told = offerPrice(offer) ?? price(offer.offers) ?? offerPrice(list(offer.priceSpecification)[0] ?? {});
    if (told) return told;
  }
  return null;
}

function offerPrice(offer) {
  const currency = text(offer.priceCurrency);
  const low = offer.price ?? offer.lowPrice;
  const from = money(low, currency);
  const to = offer.price === undefined && offer.highPrice !== undefined ? money(offer.highPrice, currency) : null;
  return from && to && from !== to ? `${from} – ${to}` : from;
}

function money(value, currency) {
  const amount = number(value);
  if (amount === null) return text(value);
  try {
    return new Intl.NumberFormat(undefined, { style: "currency", currency }).format(amount);
  } catch {
    return [new Intl.NumberFormat().format(amount), currency].filter(Boolean).join(" "); // no such currency
  }
}

function availability(offers) {
  const offer = list(offers).find((one) => one && typeof one === "object") ?? {};
  const said = text(offer.availability)?.replace(/^.*[/#:]/, "");
  return { InStock: "In stock", OutOfStock: "Out of stock", PreOrder: "Pre-order", SoldOut: "Sold out", Discontinued: "Discontinued" }[said] ?? null;
}

/** An address in one line, without the part that only repeats the name of what is there. */
function address(value, name = null) {
  const one = list(value)[0];
  if (typeof one === "string") return one.trim() || null;
  if (!one || typeof one !== "object") return null;
  const parts = [one.streetAddress, one.addressLocality, one.addressRegion, one.addressCountry].map((part) => text(part));
  const told = [...new Set(parts)].filter((part) => part && part !== name);
  return told.length ? told.join(", ") : text(one);
}

function placeName(value) {
  const one = list(value)[0];
  if (!one || typeof one !== "object") return text(one);
  return [text(one.name), address(one.address)].filter(Boolean).join(", ") || null;
}

function names(value) {
  const all = list(value).map((one) => text(one)).filter(Boolean);
  return all.length ? all.slice(0, 3).join(", ") : null;
}

function year(value) {
  return /^\d{4}/.exec(text(value) ?? "")?.[0] ?? null;
}

/** A date as it is on the clock of the place, whatever the reader's time zone. */
function moment(value) {
  const written = text(value);
  if (written === null) return null;
  const parts = /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2}))?/.exec(written);
  if (!parts) return written.length <= 60 ? written : null;
  const [years, months, days, hours, minutes] = parts.slice(1).map((part) => Number(part ?? 0));
  const clock = parts[4] !== undefined && (hours || minutes) ? { timeStyle: "short" } : {};
  const date = new Date(Date.UTC(years, months - 1, days, hours, minutes));
  return Number.isNaN(date.getTime()) ? written : new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC", ...clock }).format(date);
}
