"""The topics of fresh arguments, written by Keju, each with its relations and names."""

from __future__ import annotations

from keju.benchmarks.fresh.tasks.fallacies_wording import Topic
from keju.benchmarks.fresh.vocabulary import vocabulary

QUESTION = "The following argument pertains to this question:"
RELATIONS = "The following argument seeks to clarify some such relations:"

TOPICS = (
    Topic(
        openings=(
            "Who lives next door to whom, who works with whom, and who shares a garden? In a small"
            f" town nobody can keep all of it in mind. {RELATIONS}",
            "In the long street behind the station everybody knows everybody, but how exactly?"
            f" {QUESTION}",
        ),
        relations=(
            "neighbour of", "tenant of", "colleague of", "pen friend of", "dance partner of",
            "former pupil of", "rival of", "godchild of", "landlord of", "chess partner of",
        ),
        names=vocabulary("people.en"),
        individuals=(
            "Alma", "Birgit", "Celeste", "Dorian", "Edgar", "Frieda", "Gustav", "Henrik", "Ilona",
            "Jerome", "Kirsten", "Ludwig", "Moritz", "Nadine", "Orlando", "Philippa", "Quentin",
            "Rosalind", "Sigrid", "Theodor", "Ulrike", "Valentin", "Wilhelm", "Yvette", "Zeno",
        ),
        persons=True,
    ),
    Topic(
        openings=(
            "Some people take up one language and keep to it, others try a new one every winter."
            f" But who has to do with which of them? {QUESTION}",
            "Does a teacher of Latin speak Greek? Do those who translate also write? Language"
            f" schools would like to know such things about their visitors. {RELATIONS}",
        ),
        relations=(
            "speaker of", "teacher of", "student of", "translator of", "scholar of",
            "beginner of", "examiner of", "lover of",
        ),
        names=(
            "Basque", "Quechua", "Icelandic", "Swahili", "Tamil", "Hausa", "Mongolian", "Welsh",
            "Maori", "Georgian", "Catalan", "Zulu", "Finnish", "Nepali", "Khmer", "Estonian",
            "Amharic", "Yoruba", "Lao", "Maltese", "Galician", "Burmese", "Uzbek", "Latvian",
            "Breton", "Tibetan", "Guarani", "Samoan", "Armenian", "Malay", "Faroese", "Somali",
        ),
        individuals=(
            "Achim", "Beatrix", "Corinna", "Dimitri", "Emilia", "Franz", "Gloria", "Hilda",
            "Ignaz", "Jolanda", "Konrad", "Loretta", "Manfred", "Nikita", "Ophelia", "Patrizia",
            "Rainer", "Sabine", "Traudl", "Urban", "Viola", "Waldemar", "Xenia", "Zita",
        ),
        persons=True,
    ),
    Topic(
        openings=(
            "Newspapers want to know whether the readers of one of them also turn to another, and"
            f" who writes to whom. {RELATIONS}",
            "There are people who never miss a paper, and people who only complain about it. Which"
            f" of them are the same? {QUESTION}",
        ),
        relations=(
            "reader of", "subscriber to", "critic of", "former editor of", "sponsor of",
            "columnist of", "collector of", "printer of", "occasional buyer of", "shareholder of",
        ),
        names=(
            "the Harbour Gazette", "the Valley Courier", "the Morning Ledger", "the Island Echo",
            "the Northern Star", "the Evening Lantern", "the Miller's Weekly", "the River Post",
            "the Garden Review", "the Railway Times", "the Sunday Compass", "the Hill Observer",
            "the Coast Tribune", "the Market Mirror", "the Daily Anchor", "the Forest Herald",
            "the Bridge Journal", "the Winter Almanac", "the Student Voice", "the Desert Bulletin",
            "the Lakeside News", "the Village Drum", "the Captain's Log", "the Monday Telegraph",
            "the Chess Monthly", "the Baker's Digest", "the Cinema Leaflet", "the Sailor's Guide",
        ),
        individuals=(
            "Anselm", "Babette", "Claudio", "Desiree", "Ernesto", "Fabienne", "Gregor", "Hortense",
            "Isidor", "Janine", "Kasimir", "Leonora", "Maurice", "Nicoletta", "Oswald", "Pauline",
            "Reinhold", "Salome", "Tancred", "Undine", "Veronika", "Wenzel", "Yolanda", "Zacharias",
        ),
        persons=True,
    ),
    Topic(
        openings=(
            "Which part belongs to which machine? In an old workshop drawers are full of things"
            f" that may fit more than one. {RELATIONS}",
            "Those who repair machines need to know what is built into them, and makers do not"
            f" always tell. Which part is found where? {QUESTION}",
        ),
        relations=("component of",),
        names=(
            "the Kestrel pump", "the Orion drill", "the Bison tractor", "the Lumen projector",
            "the Swift bicycle", "the Atlas crane", "the Polar freezer", "the Vesta stove",
            "the Tempo clock", "the Nova radio", "the Pelican dredger", "the Sirocco fan",
            "the Hermes scooter", "the Boreas heater", "the Argus camera", "the Titan press",
            "the Calypso boat", "the Merlin kite", "the Juno printer", "the Rhino loader",
            "the Cobra saw", "the Delphi robot", "the Echo organ", "the Falcon glider",
            "the Granite mill", "the Hydra boiler", "the Iris telescope", "the Jaguar motor",
            "the Krypton lamp", "the Lotus mixer",
        ),
        individuals=(
            "Bolt K7", "Spring 12", "Gasket 4B", "Valve 19", "Gear A3", "Coil 88", "Lever T2",
            "Bearing 6", "Switch 31", "Hinge M4", "Filter 27", "Washer 5", "Piston 14", "Cable R9",
            "Nozzle 3", "Fuse 42", "Pulley D1", "Socket 77", "Clamp 10", "Rotor 23",
        ),
        persons=False,
    ),
)  # fmt: skip
